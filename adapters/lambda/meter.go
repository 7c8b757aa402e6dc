package lambda

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	maxValues  = 100   // of one metric in a document
	maxMetrics = 100   // of one directive
	maxHeld    = 1_000 // values between flushes, which bounds the memory if Flush is not called
)

// Meter collects metrics during an invocation and writes them in CloudWatch's embedded
// metric format, with one call of Write. It is safe for concurrent use.
//
// A metric is either counted or observed. Its name must not be _aws or the name of a
// dimension, because all are keys of one JSON object. Lambda treats these lines, which
// have no level, as INFO, so a function with a stricter log level loses them.
//
// Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
type Meter struct {
	w          io.Writer
	namespace  string
	dimensions map[string]string
	now        func() time.Time

	mu   sync.Mutex
	held int
	sets map[dimension]map[string]*metric // by name
}

type dimension struct{ name, value string }

type metric struct {
	name, unit string
	values     []float64
}

// NewMeter returns a meter whose metrics all have the given dimensions. CloudWatch bills
// each combination of dimension values as a metric.
func NewMeter(w io.Writer, namespace string, dimensions map[string]string, now func() time.Time) *Meter {
	return &Meter{
		w: w, namespace: namespace, dimensions: maps.Clone(dimensions), now: now,
		sets: map[dimension]map[string]*metric{},
	}
}

// Count adds one to a metric. The metric gets a further dimension unless the dimension's
// name or value is empty, because CloudWatch drops metrics with an empty dimension.
func (m *Meter) Count(name, dimension, value string) { m.Add(name, dimension, value, 1) }

// Add is [Meter.Count] for n at once.
func (m *Meter) Add(name, dimension, value string, n int) {
	m.add(name, "Count", dimension, value, func(counts []float64) []float64 {
		if len(counts) == 0 {
			counts = []float64{0}
		}
		counts[0] += float64(n)
		return counts
	})
}

// Observe adds a duration to a metric, in milliseconds. For dimension and value see
// [Meter.Count].
func (m *Meter) Observe(name, dimension, value string, d time.Duration) {
	m.add(name, "Milliseconds", dimension, value, func(values []float64) []float64 {
		return append(values, float64(d.Microseconds())/1000)
	})
}

func (m *Meter) add(name, unit, dimensionName, value string, change func([]float64) []float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := dimension{dimensionName, value}
	if dimensionName == "" || value == "" {
		key = dimension{}
	}
	set := m.sets[key]
	if set == nil {
		set = map[string]*metric{}
		m.sets[key] = set
	}
	if set[name] == nil {
		set[name] = &metric{name: name, unit: unit}
	}
	before := len(set[name].values)
	set[name].values = change(set[name].values)
	if m.held += len(set[name].values) - before; m.held >= maxHeld {
		m.flush()
	}
}

// Flush writes the metrics since the last Flush, if there are any. Call it before the
// invocation ends, because Lambda may then freeze or end the process.
func (m *Meter) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
}

func (m *Meter) flush() {
	if m.held == 0 {
		return
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	timestamp := m.now().UnixMilli()
	keys := slices.SortedFunc(maps.Keys(m.sets), func(a, b dimension) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, key := range keys {
		for metrics := range documents(m.sets[key]) {
			_ = encoder.Encode(m.document(timestamp, key, metrics)) // strings and finite numbers always encode
		}
	}
	_, _ = m.w.Write(lines.Bytes()) // an order must not fail because its metrics cannot be written
	m.held = 0
	clear(m.sets)
}

// documents splits a set into parts that fit the format's limits for one document.
func documents(set map[string]*metric) iter.Seq[[]metric] {
	names := slices.Sorted(maps.Keys(set))
	return func(yield func([]metric) bool) {
		for from := 0; ; from += maxValues {
			var part []metric
			for _, name := range names {
				if values := set[name].values; from < len(values) {
					part = append(part, metric{name, set[name].unit, values[from:min(from+maxValues, len(values))]})
				}
			}
			if len(part) == 0 {
				return
			}
			for metrics := range slices.Chunk(part, maxMetrics) {
				if !yield(metrics) {
					return
				}
			}
		}
	}
}

type metricDirective struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type definition struct{ Name, Unit string }

func (m *Meter) document(timestamp int64, key dimension, metrics []metric) map[string]any {
	document := map[string]any{}
	for name, value := range m.dimensions {
		document[name] = value
	}
	if key.name != "" {
		document[key.name] = key.value
	}
	names := slices.AppendSeq(
		[]string{}, maps.Keys(document),
	) // not nil: without dimensions, the format wants [] and not null
	slices.Sort(names)
	directive := metricDirective{Namespace: m.namespace, Dimensions: [][]string{names}}
	for _, metric := range metrics {
		directive.Metrics = append(directive.Metrics, definition{metric.name, metric.unit})
		document[metric.name] = metric.values
	}
	document["_aws"] = struct {
		Timestamp         int64
		CloudWatchMetrics []metricDirective
	}{timestamp, []metricDirective{directive}}
	return document
}
