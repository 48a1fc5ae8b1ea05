"""Detects whether images have changed: measures of two samples, a two-sample test for each measure, one verdict.

`measures` measures an image, and `sample` samples a dataset, a split or a folder. `two_samples` has the tests, and
`compare` runs them with one bound on false alarms. `chapter` renders the result. Commands and gates call `monitor`.
"""
