package invariants

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// leaks returns the orders whose customer, payer or payment method appears in the log,
// and whether a secret does. It compares decoded values: JSON may escape an id in the raw
// text, and an id such as "me" is part of many words.
func (b *Books) leaks(broken report) {
	texts := loggedTexts(b.Log)
	appears := func(what, secret string, in func(loggedText) bool) {
		if secret != "" &&
			slices.ContainsFunc(texts, func(t loggedText) bool { return in(t) && holdsWord(t.value, secret) }) {
			broken("leak: the log holds %s", what)
		}
	}
	anywhere := func(loggedText) bool { return true }
	for _, secret := range b.Secrets {
		appears("a secret", secret, anywhere)
	}
	ids, seen := map[string]bool{}, map[[3]string]bool{}
	for _, m := range b.Messages {
		ids[string(m.Order.ID())] = true
	}
	for _, m := range b.Messages {
		personal := [...]string{m.Order.CustomerID(), m.Order.Payment().Customer, m.Order.Payment().Method}
		if m.Invalid != nil || seen[personal] {
			continue
		}
		seen[personal] = true
		of := " of order " + string(m.Order.ID())
		// A customer id is free text: it may equal an order id, which every line holds.
		if !ids[personal[0]] {
			appears("the customer"+of, personal[0], loggedText.free)
		}
		appears("the payer"+of, personal[1], anywhere)
		appears("the payment method"+of, personal[2], anywhere)
	}
}

// secretLike is what a key, a payer, an e-mail address or a card number looks like.
var secretLike = regexp.MustCompile(`\b([rs]k_(test|live)|whsec|cus|pm|src|tok)_\w+|` +
	`\bA[KS]IA[0-9A-Z]{16}\b|\b[\w.+-]+@[\w-]+\.\w|\b[3-6]\d{3}( ?\d{4}){2} ?\d{1,4}\b`)

// Leak reports whether a log line seems to hold what none may. It knows no values: the
// books of a system whose messages are known do.
func Leak(text string, l Line) bool {
	for _, id := range []string{l.OrderID, l.RefundID} {
		if id != "" { // a producer's id may look like anything
			text = strings.ReplaceAll(text, id, "")
		}
	}
	return secretLike.MatchString(text)
}

// loggedText is a string value of a log line. Field is the name of the outermost field
// that holds it, or "" in a line that is not JSON.
type loggedText struct{ field, value string }

// free reports whether the field may hold any text, as opposed to one of a few constants.
func (t loggedText) free() bool {
	switch strings.ToLower(t.field) {
	case "timestamp", "level", "message", "status", "verdict", "reason", "_aws":
		return false
	}
	return true
}

// loggedTexts decodes the lines of a log and returns each text once. A line that is not a
// JSON object, such as one of a panic, is a text as a whole.
func loggedTexts(log string) []loggedText {
	all := map[loggedText]bool{}
	for line := range strings.Lines(log) {
		var object map[string]any
		if json.Unmarshal([]byte(line), &object) != nil {
			all[loggedText{"", line}] = true
			continue
		}
		for field, value := range object {
			addTexts(all, field, value)
		}
	}
	return slices.Collect(maps.Keys(all))
}

// addTexts adds every string within a decoded JSON value. Numbers are none of the ids.
func addTexts(to map[loggedText]bool, field string, value any) {
	switch v := value.(type) {
	case string:
		to[loggedText{field, v}] = true
	case []any:
		for _, element := range v {
			addTexts(to, field, element)
		}
	case map[string]any:
		for _, element := range v {
			addTexts(to, field, element)
		}
	}
}

// holdsWord reports whether a text is the word, or holds it between characters that are
// not part of a word.
func holdsWord(text, word string) bool {
	const end = `[^_\pL\p{Nd}]`
	return strings.Contains(text, word) &&
		regexp.MustCompile(`(^|`+end+`)`+regexp.QuoteMeta(word)+`(`+end+`|$)`).MatchString(text)
}
