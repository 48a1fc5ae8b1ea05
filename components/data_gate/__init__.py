"""DataGate: anomalies that ExampleValidator found become go or no go."""
