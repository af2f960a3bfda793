"""Tables and figures of the poster on learned loss geometries."""
