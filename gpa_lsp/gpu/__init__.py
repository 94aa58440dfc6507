"""GPUs: tables of architectures, products, and the roofs of a device."""
