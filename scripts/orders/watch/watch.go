// Package watch shows a deployment as it changes: the queues, the orders that wait, the
// dead letters by reason. It reads, and changes nothing.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

// Depth is how many messages a queue has, as SQS approximates it.
type Depth struct {
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
	Delayed  int `json:"delayed"`
}

// Total returns all messages of the queue.
func (d Depth) Total() int { return d.Waiting + d.InFlight + d.Delayed }

// Snapshot is what a deployment looked like at one time; its queues are those of orders
// and of refunds together. A part that could not be read is
// missing, and Errors has the reasons.
type Snapshot struct {
	At          time.Time            `json:"at"`
	Orders      Depth                `json:"orderQueue"`
	DeadLetters Depth                `json:"deadLetterQueue"`
	Reasons     map[string]int       `json:"deadLettersByReason,omitempty"` // of those that were read
	Waiting     map[order.Status]int `json:"waiting,omitempty"`             // orders, by the index
	Due         int                  `json:"due"`                           // of those
	More        bool                 `json:"more,omitempty"`                // the index has more than were read
	Oldest      Oldest               `json:"oldest,omitzero"`
	Scanned     *Scanned             `json:"scanned,omitempty"` // the last whole scan
	Errors      []string             `json:"errors,omitempty"`
}

// Oldest is the order that has waited for the longest time.
type Oldest struct {
	ID     order.ID     `json:"orderId"`
	Status order.Status `json:"status"`
	Since  time.Time    `json:"since"`
}

// Scanned counts every order of the table.
type Scanned struct {
	At     time.Time            `json:"at"` // when the scan ended
	Orders map[order.Status]int `json:"orders"`
}

// Sources reads the parts of a snapshot. A nil function is not called.
type Sources struct {
	Depths  func(context.Context) (live, dead Depth, err error)
	Waiting func(context.Context, *Snapshot) error
	Reasons func(context.Context) (map[string]int, error)
	Scan    func(context.Context) (map[order.Status]int, error)
	Now     func() time.Time
}

// Read reads all parts but the scan.
func (s Sources) Read(ctx context.Context) Snapshot {
	n := Snapshot{At: s.Now()}
	var err error
	if n.Orders, n.DeadLetters, err = s.Depths(ctx); err != nil {
		n.failed("queues", err)
	}
	if err := s.Waiting(ctx, &n); err != nil {
		n.failed("waiting orders", err)
	}
	if s.Reasons != nil && n.DeadLetters.Total() > 0 {
		if n.Reasons, err = s.Reasons(ctx); err != nil {
			n.failed("dead letters", err)
		}
	}
	return n
}

func (n *Snapshot) failed(part string, err error) {
	n.Errors = append(n.Errors, part+": "+err.Error())
}

// Text formats the snapshot, with the change since an earlier one that may be zero.
func (n Snapshot) Text(before Snapshot) string {
	var b strings.Builder
	line := func(name string, count any, more string) { fmt.Fprintf(&b, "%-13s %8v   %s\n", name, count, more) }
	change := perMinute(n.Orders.Total()-before.Orders.Total(), n.At.Sub(before.At), before.At)
	line("queue", n.Orders.Total(), fmt.Sprintf("%d waiting, %d in flight, %d delayed%s",
		n.Orders.Waiting, n.Orders.InFlight, n.Orders.Delayed, change))
	line("dead letters", n.DeadLetters.Total(), counts(n.Reasons))
	waiting, more, due := sum(n.Waiting), "", ""
	if n.More {
		more = "+"
	}
	if n.Due > 0 {
		due = fmt.Sprintf("; %d due", n.Due)
	}
	line("waiting", fmt.Sprint(waiting, more), counts(n.Waiting)+due)
	if o := n.Oldest; o.ID != "" {
		line("oldest", age(n.At.Sub(o.Since)), fmt.Sprintf("%s, %s", o.ID, o.Status))
	}
	if s := n.Scanned; s != nil {
		change := ""
		if was := before.Scanned; was != nil {
			change = perMinute(sum(s.Orders)-sum(was.Orders), s.At.Sub(was.At), was.At)
		}
		line("all orders", sum(s.Orders), counts(s.Orders)+change+", scanned at "+s.At.UTC().Format("15:04:05"))
	}
	for _, e := range n.Errors {
		line("ERROR", "", e)
	}
	return b.String()
}

// counts lists what there is, the most frequent first.
func counts[K ~string](of map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(of[b]-of[a], cmp.Compare(a, b))
	})
	var all []string
	for _, k := range keys {
		all = append(all, fmt.Sprintf("%s %d", k, of[k]))
	}
	return strings.Join(all, ", ")
}

func sum[K comparable](of map[K]int) (total int) {
	for _, n := range of {
		total += n
	}
	return total
}

// perMinute formats a change over a time, or nothing if there was no earlier time.
func perMinute(change int, over time.Duration, since time.Time) string {
	if since.IsZero() || over <= 0 || change == 0 {
		return ""
	}
	return fmt.Sprintf(", %+.0f per minute", float64(change)/over.Minutes())
}

// age formats a duration in its largest two units.
func age(d time.Duration) string {
	d = d.Round(time.Second)
	switch day := 24 * time.Hour; {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}
