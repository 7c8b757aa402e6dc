package shell

import (
	"fmt"
	"time"
)

// Moment is a point in time as a person types it: a date, a time, or how long ago. The
// zero Moment was not typed.
type Moment struct {
	text string
	at   time.Time     // of a date or a time
	ago  time.Duration // otherwise
}

// UnmarshalText parses a flag.
func (m *Moment) UnmarshalText(text []byte) error {
	*m = Moment{text: string(text)}
	if ago, err := time.ParseDuration(m.text); err == nil && ago >= 0 {
		m.ago = ago
		return nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, m.text); err == nil {
			m.at = at
			return nil
		}
	}
	return fmt.Errorf("time %q: want 2026-11-01, 2026-11-01T08:00:00Z or 25h", text)
}

// Typed reports whether a person typed the moment.
func (m Moment) Typed() bool { return m.text != "" }

// At returns the time in UTC in whole seconds, as Stripe counts them, or the zero time of
// the zero Moment.
func (m Moment) At(now time.Time) time.Time {
	at := m.at
	if m.Typed() && at.IsZero() {
		at = now.Add(-m.ago)
	}
	return at.UTC().Truncate(time.Second)
}

// String returns the moment as it was typed.
func (m Moment) String() string { return m.text }
