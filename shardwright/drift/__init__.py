"""Detects whether images have changed: measures of two samples, a two-sample test for each measure, one verdict.

`measures` measures an image, `sample` samples a dataset, a split or a folder, `two_samples` has the tests, `compare`
runs them with one bound on false alarms, `chapter` renders the result, `monitor` is what commands and gates call.
"""
