package lambdatest_test

import (
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// BenchmarkInvoke is one invocation of a warm instance, one after the other.
func BenchmarkInvoke(b *testing.B) {
	host, err := lambdatest.Start(lambdatest.Options{Binary: subject(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	for b.Loop() {
		if _, err := host.Invoke(b.Context(), do("echo", "")); err != nil {
			b.Fatal(err)
		}
	}
	report := host.Report()
	b.ReportMetric(float64(report.Invocations)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(report.LatencyMS*1000, "µs/answer")
}
