package lambdatest_test

import (
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// BenchmarkInvoke is one invocation of a warm instance, one after the other.
func BenchmarkInvoke(b *testing.B) {
	host, err := lambdatest.Start(lambdatest.Options{Binary: subject(b)})
	must(b, err)
	defer func() { _ = host.Close() }()
	for b.Loop() {
		if _, err := host.Invoke(b.Context(), do("echo", "")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(host.Report().Invocations)/b.Elapsed().Seconds(), "requests/s")
}
