package stripe

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden replaces what no error may repeat.
const hidden = "[redacted]"

// redact takes payment data and secrets out of a message of Stripe's, which may repeat what it was sent: first the values of
// the request, then what is in quotes, then whatever looks like an id.
func (c call) redact(message string) string {
	for _, value := range c.secrets() {
		message = strings.ReplaceAll(message, value, hidden)
	}
	return redactIDs(redactQuoted(message))
}

// secrets are the values of the request that no error repeats: all but those that are known to hold no personal or payment
// data. The longest comes first, so that none is replaced only in part.
func (c call) secrets() []string {
	values := []string{c.apiKey, c.Key.String()}
	for name, sent := range c.Params {
		if !isPublicParameter(name) {
			values = append(values, sent...)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// shown reports whether an error may repeat the value of a parameter that we send.
func isPublicParameter(parameter string) bool {
	switch parameter {
	case "amount", "currency", "capture_method", "off_session",
		"automatic_payment_methods[enabled]", "automatic_payment_methods[allow_redirects]",
		"metadata[" + metaOrder + "]", "metadata[" + metaScope + "]", "expand[]", "query":
		return true
	}
	return false
}

// redactQuoted takes out what a message has in quotes, because Stripe quotes values, as in: No such customer: 'cus_1'.
//
// A quotation mark opens if no word ends there, and closes if no word begins there, so "can't" has none. What is not
// closed is taken out to its end.
func redactQuoted(message string) string {
	var b strings.Builder
	for before := ' '; message != ""; {
		r, size := utf8.DecodeRuneInString(message)
		b.WriteString(message[:size])
		message = message[size:]
		end := closing(r)
		if end == 0 || inWord(before) {
			before = r
			continue
		}
		quoted, rest, closed := cutQuotation(message, end)
		if !closed {
			return b.String() + hidden
		}
		if !harmless(quoted) {
			quoted = hidden
		}
		b.WriteString(quoted + string(end))
		before, message = end, rest
	}
	return b.String()
}

// closing is the mark that ends a quotation which r opens, or 0 if r opens none.
func closing(r rune) rune {
	switch r {
	case '\'', '"', '`':
		return r
	case '\u2018':
		return '\u2019'
	case '\u201c':
		return '\u201d'
	}
	return 0
}

// cutQuotation splits text around the mark that closes a quotation.
func cutQuotation(text string, end rune) (quoted, rest string, closed bool) {
	for i, r := range text {
		if r != end {
			continue
		}
		rest = text[i+utf8.RuneLen(end):]
		if next, _ := utf8.DecodeRuneInString(rest); !inWord(next) {
			return text[:i], rest, true
		}
	}
	return "", "", false
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// public are ids of intents, requests and accounts, and names of permissions, which a person needs to mend things.
var public = regexp.MustCompile(`^((pi|req|acct)_[A-Za-z0-9]+|rak_[a-z_]+_(read|write))$`)

// harmless reports whether a quoted text may be shown: it is public, or the name of a parameter, such as
// automatic_payment_methods[enabled].
func harmless(quoted string) bool {
	if public.MatchString(quoted) {
		return true
	}
	words := strings.FieldsFunc(quoted, func(r rune) bool { return r == '[' || r == ']' })
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !parameterName(word) })
}

// parameterName reports whether a word names a parameter of the requests that are made here, or one that Stripe may ask for
// in their place. Any other word may be a value.
func parameterName(word string) bool {
	switch word {
	case "amount", "currency", "customer", "payment_method", "payment_method_types", "payment_method_data",
		"payment_method_options", "payment_method_configuration", "capture_method", "confirmation_method", "confirm",
		"automatic_payment_methods", "enabled", "allow_redirects", "off_session", "return_url",
		"error_on_requires_action", "setup_future_usage", "mandate", "mandate_data", "metadata", metaOrder, metaScope,
		"fingerprint", "description", "expand", "latest_charge", "intent", "payment_intent", "idempotency_key", "query":
		return true
	}
	return false
}

// ids are words such as "pm_1MqLiJLkdIwHu7ix", "pi_1_secret_2" and "rk_test_*****QzX".
var ids = regexp.MustCompile(`[A-Za-z]+_[\w*.]*[\w*]`)

// redactIDs takes ids out of a text. Those of intents, requests and accounts stay, and so do words such as
// "payment_method": what makes any other word an id is a capital, a digit, or a prefix whose ids may have neither, as in
// "pm_card_visa".
func redactIDs(text string) string {
	return ids.ReplaceAllStringFunc(text, func(word string) string {
		prefix, rest, _ := strings.Cut(word, "_")
		secret := strings.Contains(rest, "secret")
		switch prefix {
		case "pi", "req", "acct":
		case "cus", "pm", "card", "src", "ba", "seti", "tok", "sk", "rk", "pk":
			secret = true
		default:
			secret = secret || strings.ContainsAny(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ*")
		}
		if secret {
			return prefix + "_" + hidden
		}
		return word
	})
}

// redacted is an error about our own configuration.
type redacted struct{ error }

func (e redacted) Error() string { return redactIDs(e.error.Error()) }
func (e redacted) Unwrap() error { return e.error }

// networkError is an error of the network without what it quotes: it may be what the other side sent.
type networkError struct {
	error
	text string
}

func (e networkError) Error() string { return e.text }
func (e networkError) Unwrap() error { return e.error }

// redactNetwork leaves the request's URL out, which the call's name stands for.
func (c call) redactNetwork(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok {
		text = e.Err.Error()
	}
	if first, last := strings.IndexByte(text, '"'), strings.LastIndexByte(text, '"'); first < last {
		text = text[:first] + hidden + text[last+1:]
	}
	return networkError{err, c.redact(text)}
}
