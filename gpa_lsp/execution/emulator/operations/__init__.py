"""What every PTX instruction computes that is neither memory nor control: pure numpy functions, found by :mod:`.find`."""
