"""A report as one page: kernels, advice, rooflines, answers, source and SASS."""
