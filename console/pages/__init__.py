"""HTML pages. A view parses, calls one service or selector, and renders; every page works without JavaScript."""
