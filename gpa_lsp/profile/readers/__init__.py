"""One file per profile format; each defines ``READER``."""
