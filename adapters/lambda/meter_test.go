package lambda_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
)

type writes struct {
	bytes.Buffer
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Buffer.Write(p)
}

func newMeter(w *writes, dimensions map[string]string) *lambda.Meter {
	return lambda.NewMeter(w, "shop", dimensions, func() time.Time { return time.UnixMilli(1_700_000_000_123) })
}

func TestMeterWritesEmbeddedMetrics(t *testing.T) {
	var out writes
	dimensions := map[string]string{"service": "order"}
	meter := newMeter(&out, dimensions)
	dimensions["service"] = "other" // the meter has a copy
	meter.Count("results", "reason", "paid")
	meter.Count("results", "reason", "paid")
	meter.Count("results", "reason", "declined")
	meter.Count("records", "", "")
	meter.Count("records", "reason", "") // CloudWatch drops metrics with an empty dimension
	meter.Observe("latency", "call", "charge", 1500*time.Microsecond)
	meter.Observe("latency", "call", "charge", 2*time.Millisecond)
	meter.Flush()

	const directive = `{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"shop",`
	want := `{"_aws":` + directive + `"Dimensions":[["service"]],"Metrics":[{"Name":"records","Unit":"Count"}]}]},` +
		`"records":[2],"service":"order"}
{"_aws":` + directive + `"Dimensions":[["call","service"]],"Metrics":[{"Name":"latency","Unit":"Milliseconds"}]}]},` +
		`"call":"charge","latency":[1.5,2],"service":"order"}
{"_aws":` + directive + `"Dimensions":[["reason","service"]],"Metrics":[{"Name":"results","Unit":"Count"}]}]},` +
		`"reason":"declined","results":[1],"service":"order"}
{"_aws":` + directive + `"Dimensions":[["reason","service"]],"Metrics":[{"Name":"results","Unit":"Count"}]}]},` +
		`"reason":"paid","results":[2],"service":"order"}
`
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("lines: got -, want +\n%s", diff)
	}
	if meter.Flush(); out.n != 1 {
		t.Errorf("writes = %d, want 1: the second Flush has nothing to write", out.n)
	}
}

// A line has at most 100 metrics of at most 100 values (CloudWatch user guide,
// "Specification: Embedded metric format"). A meter that nobody flushes writes each
// hundred values itself, so that its memory is bounded.
func TestMeterObeysTheLimitsOfTheFormat(t *testing.T) {
	var out writes
	meter := newMeter(&out, nil)
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for i := range 25 {
				meter.Observe("latency", "", "", time.Duration(i)*time.Millisecond)
			}
		})
	}
	workers.Wait()
	if out.n != 2 {
		t.Errorf("writes of 250 values without a Flush = %d, want 2", out.n)
	}
	for i := range 150 {
		meter.Count(fmt.Sprint("metric", i), "", "")
	}
	meter.Flush()
	values, counts := 0, 0
	for line := range strings.Lines(out.String()) {
		var d struct {
			AWS struct {
				CloudWatchMetrics []struct{ Metrics []struct{ Name string } }
			} `json:"_aws"`
			Latency []float64
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		metrics := d.AWS.CloudWatchMetrics[0].Metrics
		if len(metrics) > 100 || len(d.Latency) > 100 || !strings.Contains(line, `"Dimensions":[[]]`) {
			t.Errorf("got a line of %d metrics and %d values, want at most 100, and no dimensions", len(metrics), len(d.Latency))
		}
		values += len(d.Latency)
		for _, m := range metrics {
			counts += strings.Count(m.Name, "metric")
		}
	}
	if values != 250 || counts != 150 {
		t.Errorf("got %d values and %d counts, want 250 and 150", values, counts)
	}
}
