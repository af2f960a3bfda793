"""Files of data sets: variants, local files, downloads and cached arrays."""
