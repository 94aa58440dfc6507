"""What the compiler made of divisions, roots, mathematical functions and widened values: operations found again in their instructions."""
