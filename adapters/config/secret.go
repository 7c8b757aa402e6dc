package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that prints as [redacted], however it is printed. Its zero value is the empty text.
type Secret struct {
	// A pointer, because fmt calls no method on a Secret in another struct's unexported field, but prints its fields:
	// it then prints an address.
	text *string
}

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Every call of it is a place to review.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// UnmarshalText hides what it is given; every text is a valid secret.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// String is [redacted], as is every other form below.
func (Secret) String() string { return redacted }

// GoString serves %#v.
func (Secret) GoString() string { return redacted }

// Format serves every verb of fmt, also those that would take String's result apart, such as %x.
func (Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText serves XML, YAML and map keys.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON serves encoding/json.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue serves log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
