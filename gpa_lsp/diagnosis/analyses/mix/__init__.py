"""What is executed, in classes and on pipes."""
