"""DataGate: stops the run on the anomalies that ExampleValidator found."""
