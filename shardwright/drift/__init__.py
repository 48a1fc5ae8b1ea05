"""Whether images have changed: measures of a sample of each side, a two-sample test for each, one verdict.

`rows` measures an image, `sample` draws images of a dataset, a split or a folder, `two_samples` has the
tests, `compare` puts them together with a bound on false alarms, `show` renders the outcome for the report,
`calibration` makes the table of false alarms and power in `docs/drift.md`.
"""
