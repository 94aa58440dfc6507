"""What the compiler makes of fixes, before anybody applies them."""
