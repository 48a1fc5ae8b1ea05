"""What a notebook shows of datasets, examples, batches and comparisons: small HTML, nothing fetched, no script.

`html` has the parts, `examples` single images, `datasets` the whole, `batches` what a loader gives, `drifted` what a
comparison says.
"""
