"""What every room needs: errors, places, statistics, catalogues, files that are written whole, types that cost little at import."""
