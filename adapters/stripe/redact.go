package stripe

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// hidden replaces secrets and payment data in errors.
const hidden = "[redacted]"

// redact removes secrets and payment data from a message of Stripe's, which may repeat
// what it was sent: first the values of the request, then quoted text, then everything
// that looks like an id.
func (c call) redact(message string) string {
	for _, value := range c.secrets() {
		message = strings.ReplaceAll(message, value, hidden)
	}
	return redactIDs(redactQuoted(message))
}

// secrets returns the values of the request that no error may repeat: all except those
// that hold no personal data and no payment data. The longest comes first, so that no
// value is replaced only in part.
func (c call) secrets() []string {
	values := []string{c.apiKey, c.Key}
	for name, sent := range c.Params {
		if !isPublicParameter(name) {
			values = append(values, sent...)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// isPublicParameter reports whether an error may repeat the value of a parameter.
func isPublicParameter(name string) bool {
	switch name {
	case "amount", "currency", "capture_method", "off_session", "expand[]", "query",
		"automatic_payment_methods[enabled]", "automatic_payment_methods[allow_redirects]",
		"payment_intent", "reason", "limit", "starting_after",
		"metadata[" + metaOrder + "]", "metadata[" + metaScope + "]", "metadata[" + metaRefund + "]":
		return true
	}
	return false
}

// quotationMarks open a quotation.
const quotationMarks = "'\"`\u2018\u201c"

// closingMark returns the mark that closes a quotation.
func closingMark(opening string) string {
	return strings.NewReplacer("\u2018", "\u2019", "\u201c", "\u201d").Replace(opening)
}

// redactQuoted removes quoted text from a message, because Stripe quotes values, as in:
// No such customer: 'cus_1'.
//
// A quotation mark opens a quotation unless it ends a word, and closes one unless it
// starts a word, so "can't" contains no quotation. An unclosed quotation is removed up to
// the end.
func redactQuoted(message string) string {
	return expressions().quoted.ReplaceAllStringFunc(message, redactQuotation)
}

// expressions are compiled at the first error, so that they cost a cold start nothing.
//
//nolint:gochecknoglobals // it never changes
var expressions = sync.OnceValue(func() (e struct{ quoted, public, id *regexp.Regexp }) {
	e.quoted = regexp.MustCompile(quotedPattern())
	e.public = regexp.MustCompile(`^((pi|re|req|acct)_[A-Za-z0-9]+|rak_[a-z_]+_(read|write))$`)
	e.id = regexp.MustCompile(`[A-Za-z]+_[\w*.]*[\w*]`)
	return e
})

// quotedPattern matches a word, so that its apostrophe opens nothing, or a quotation.
func quotedPattern() string {
	const inWord = `[\pL\p{Nd}_]`
	patterns := []string{inWord + "+[" + quotationMarks + "]?"}
	for _, opening := range quotationMarks {
		mark := string(opening)
		quoted := fmt.Sprintf("%s(?:[^%[2]s]|%[2]s%[3]s)*%[2]s?", mark, closingMark(mark), inWord)
		patterns = append(patterns, quoted)
	}
	return strings.Join(patterns, "|")
}

// redactQuotation removes the text between quotation marks. It returns a word as it is.
func redactQuotation(text string) string {
	opening, size := utf8.DecodeRuneInString(text)
	if !strings.ContainsRune(quotationMarks, opening) {
		return text
	}
	mark := closingMark(text[:size])
	switch quoted, closed := strings.CutSuffix(text[size:], mark); {
	case !closed:
		return text[:size] + hidden
	case !isPublicText(quoted):
		return text[:size] + hidden + mark
	}
	return text
}

// isPublicText reports whether an error may repeat a quoted text: the id of an intent,
// refund, request or account, the name of a permission, or the name of a parameter, such
// as automatic_payment_methods[enabled]. An operator needs them to fix an error.
func isPublicText(quoted string) bool {
	if expressions().public.MatchString(quoted) {
		return true
	}
	words := strings.FieldsFunc(quoted, func(r rune) bool { return r == '[' || r == ']' })
	value := func(word string) bool { return !isParameterName(word) }
	return len(words) > 0 && !slices.ContainsFunc(words, value)
}

// isParameterName reports whether a word names a parameter that this package sends, or
// that Stripe may require instead. Any other word may be a value.
func isParameterName(word string) bool {
	switch word {
	case "amount", "currency", "customer", "payment_method", "payment_method_types", "payment_method_data",
		"payment_method_options", "payment_method_configuration", "capture_method", "confirmation_method", "confirm",
		"automatic_payment_methods", "enabled", "allow_redirects", "off_session", "return_url",
		"error_on_requires_action", "setup_future_usage", "mandate", "mandate_data", "metadata",
		metaOrder, metaScope, metaFingerprint, "description", "expand", latestCharge, "intent", "payment_intent",
		"idempotency_key", "query", "charge", "reason", "refunds", metaRefund:
		return true
	}
	return false
}

// redactIDs removes ids from a text, except those of intents, refunds, requests and
// accounts. An id is a word such as "pm_1MqLiJLkdIwHu7ix", "pi_1_secret_2" or
// "rk_test_*****QzX".
func redactIDs(text string) string {
	return expressions().id.ReplaceAllStringFunc(text, redactID)
}

// redactID removes the part of an id behind its prefix. A word with an underscore is an
// id if it contains a capital or a digit, unlike "payment_method", or has a prefix whose
// ids may contain neither, as in "pm_card_visa".
func redactID(word string) string {
	prefix, rest, _ := strings.Cut(word, "_")
	secret := strings.Contains(rest, "secret")
	switch prefix {
	case "pi", "re", "req", "acct":
	case "cus", "pm", "card", "src", "ba", "seti", "tok", "sk", "rk", "pk":
		secret = true
	default:
		secret = secret || strings.ContainsAny(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ*")
	}
	if secret {
		return prefix + "_" + hidden
	}
	return word
}

// redactedError is an error with another text.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

// redactNetwork redacts an error of the network. It removes the URL, because the error of
// the call has the call's name, and quoted text, because it may be what the other side
// sent.
func (c call) redactNetwork(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok {
		text = e.Err.Error()
	}
	if first, last := strings.IndexByte(text, '"'), strings.LastIndexByte(text, '"'); first < last {
		text = text[:first] + hidden + text[last+1:]
	}
	return redactedError{err, c.redact(text)}
}
