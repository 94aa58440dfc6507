"""Charts as Vega-Lite specifications: the roofline, the charts of the analyses, and what draws them with and without a browser."""
