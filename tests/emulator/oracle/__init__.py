"""What PTX instructions compute, a second time and in numpy: what the core gives is compared with it."""
