package lambda

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	limit = 100     // of the metrics in a document, and of the values of a metric
	count = "Count" // the unit of a metric that has one value, the sum of what was added
)

// Meter collects metrics during an invocation and writes them in CloudWatch's embedded
// metric format: at each Flush, and when a document is full. It is safe for concurrent
// use.
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
	sets map[dimension]map[string]*metric // by name
}

type dimension struct{ name, value string }

type metric struct {
	unit   string
	values []float64
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
	m.add(name, count, dimension, value, float64(n))
}

// Observe adds a duration to a metric, in milliseconds. For dimension and value see
// [Meter.Count].
func (m *Meter) Observe(name, dimension, value string, d time.Duration) {
	m.add(name, "Milliseconds", dimension, value, float64(d.Microseconds())/1000)
}

func (m *Meter) add(name, unit, dimensionName, value string, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := dimension{dimensionName, value}
	if dimensionName == "" || value == "" {
		key = dimension{}
	}
	if set := m.sets[key]; len(set) == limit && set[name] == nil {
		m.flush()
	}
	if m.sets[key] == nil {
		m.sets[key] = map[string]*metric{}
	}
	held := m.sets[key][name]
	if held == nil {
		held = &metric{unit: unit}
		m.sets[key][name] = held
	}
	if unit == count && len(held.values) > 0 {
		held.values[0] += v
		return
	}
	if held.values = append(held.values, v); len(held.values) == limit {
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
	if len(m.sets) == 0 {
		return
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	timestamp := m.now().UnixMilli()
	keys := slices.SortedFunc(maps.Keys(m.sets), func(a, b dimension) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, key := range keys {
		_ = encoder.Encode(m.document(timestamp, key)) // strings and finite numbers always encode
	}
	_, _ = m.w.Write(lines.Bytes()) // an order must not fail because its metrics cannot be written
	clear(m.sets)
}

func (m *Meter) document(timestamp int64, key dimension) map[string]any {
	document := map[string]any{}
	for name, value := range m.dimensions {
		document[name] = value
	}
	if key.name != "" {
		document[key.name] = key.value
	}
	names := append([]string{}, slices.Sorted(maps.Keys(document))...) // without dimensions [] and not null
	type definition struct{ Name, Unit string }
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []definition
	}
	metrics := directive{Namespace: m.namespace, Dimensions: [][]string{names}}
	for _, name := range slices.Sorted(maps.Keys(m.sets[key])) {
		metric := m.sets[key][name]
		metrics.Metrics = append(metrics.Metrics, definition{name, metric.unit})
		document[name] = metric.values
	}
	document["_aws"] = struct {
		Timestamp         int64
		CloudWatchMetrics []directive
	}{timestamp, []directive{metrics}}
	return document
}
