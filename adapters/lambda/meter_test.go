package lambda_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
)

// writes counts the calls of Write.
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
	t.Parallel()
	var out writes
	meter := newMeter(&out, map[string]string{"service": "order"})
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

// document is one line in the embedded metric format.
type document struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
	members map[string]json.RawMessage
}

// parse checks each line against the limits of the specification.
func parse(t *testing.T, text string) []document {
	t.Helper()
	var documents []document
	for line := range strings.Lines(text) {
		var d document
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &d.members); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, d)
		directive := d.AWS.CloudWatchMetrics[0]
		if len(directive.Metrics) > 100 || len(line) > 256<<10 || d.AWS.Timestamp == 0 {
			t.Errorf("line has %d metrics, %d bytes and timestamp %d, want at most 100, 256 KiB and a timestamp",
				len(directive.Metrics), len(line), d.AWS.Timestamp)
		}
		if len(directive.Dimensions) != 1 || directive.Dimensions[0] == nil {
			t.Errorf("dimensions = %v, want one set", directive.Dimensions)
		}
		for _, name := range directive.Dimensions[0] {
			var value string
			if err := json.Unmarshal(d.members[name], &value); err != nil || value == "" {
				t.Errorf("dimension %s is %s, want a string", name, d.members[name])
			}
		}
		for _, metric := range directive.Metrics {
			if values := d.values(t, metric.Name); len(values) == 0 || len(values) > 100 {
				t.Errorf("metric %s has %d values, want 1 to 100", metric.Name, len(values))
			}
		}
	}
	return documents
}

func (d document) values(t *testing.T, metric string) []float64 {
	t.Helper()
	var values []float64
	if err := json.Unmarshal(d.members[metric], &values); err != nil {
		t.Errorf("metric %s: %v", metric, err)
	}
	return values
}

func TestMeterObeysTheLimitsOfTheFormat(t *testing.T) {
	t.Parallel()
	var out writes
	meter := newMeter(&out, nil)
	for i := range 250 {
		meter.Observe("latency", "", "", time.Duration(i)*time.Millisecond)
	}
	for i := range 150 {
		meter.Count(fmt.Sprint("metric", i), "", "")
	}
	meter.Flush()
	var latencies []float64
	counts := 0
	for _, d := range parse(t, out.String()) {
		for _, metric := range d.AWS.CloudWatchMetrics[0].Metrics {
			if metric.Name == "latency" {
				latencies = append(latencies, d.values(t, "latency")...)
			} else {
				counts++
			}
		}
	}
	if len(latencies) != 250 || latencies[249] != 249 || counts != 150 {
		t.Errorf("got %d latencies and %d counts, want 250 and 150", len(latencies), counts)
	}
}

func TestMeterCopiesItsDimensions(t *testing.T) {
	t.Parallel()
	var out writes
	dimensions := map[string]string{"service": "order"}
	meter := newMeter(&out, dimensions)
	dimensions["service"] = "other"
	meter.Count("records", "", "")
	meter.Flush()
	if want := `"service":"order"`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s in it", out.String(), want)
	}
}

func TestFlushResetsTheMeter(t *testing.T) {
	t.Parallel()
	var out writes
	meter := newMeter(&out, nil)
	for range 3 {
		meter.Count("records", "", "")
		meter.Observe("latency", "", "", 1500*time.Microsecond)
		meter.Flush()
	}
	for n, d := range parse(t, out.String()) {
		if got := d.values(t, "records"); !slices.Equal(got, []float64{1}) {
			t.Errorf("flush %d: records = %v, want 1", n, got)
		}
		if got := d.values(t, "latency"); !slices.Equal(got, []float64{1.5}) {
			t.Errorf("flush %d: latency = %v, want 1.5", n, got)
		}
	}
	if out.n != 3 {
		t.Errorf("writes = %d, want 3", out.n)
	}
}

func TestMeterFlushesItselfAtAHundredValues(t *testing.T) {
	t.Parallel()
	var out writes
	meter := newMeter(&out, nil)
	for range 99 {
		meter.Observe("latency", "", "", time.Millisecond)
	}
	if out.n != 0 {
		t.Errorf("writes after 99 values = %d, want 0", out.n)
	}
	meter.Observe("latency", "", "", time.Millisecond)
	if out.n != 1 {
		t.Errorf("writes after 100 values = %d, want 1", out.n)
	}
}

func TestMeterWithoutFlushUsesBoundedMemory(t *testing.T) {
	t.Parallel()
	var out writes
	meter := newMeter(&out, nil)
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for range 250 {
				meter.Observe("latency", "", "", time.Millisecond)
			}
		})
	}
	workers.Wait()
	if out.n != 25 {
		t.Errorf("writes of 2,500 values without a Flush = %d, want 25", out.n)
	}
	meter.Flush()
	values := 0
	for _, d := range parse(t, out.String()) {
		values += len(d.values(t, "latency"))
	}
	if values != 2500 {
		t.Errorf("values = %d, want 2500", values)
	}
}
