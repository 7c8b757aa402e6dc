package config

import (
	"fmt"
	"io"
)

const redacted = "[redacted]"

// Secret is a string that prints as [redacted] in every format. The zero value is the
// empty string.
type Secret struct {
	text *string // a pointer: fmt prints a Secret in an unexported field without its methods
}

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the secret as a string. Review each call.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// UnmarshalText sets the secret to text. It never returns an error.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// Format writes [redacted] for every verb of fmt, %x included.
func (Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText returns [redacted], in JSON, XML, YAML and map keys too.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
