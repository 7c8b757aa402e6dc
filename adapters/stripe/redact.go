package stripe

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"
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

// redactQuoted removes quoted text from a message, because Stripe quotes values, as in:
// No such customer: 'cus_1'.
//
// A quotation mark opens a quotation unless it ends a word, and closes one unless it
// starts a word, so "can't" contains no quotation. An unclosed quotation is removed up to
// the end.
func redactQuoted(message string) string {
	var b strings.Builder
	for before := ' '; message != ""; {
		r, size := utf8.DecodeRuneInString(message)
		b.WriteString(message[:size])
		message = message[size:]
		end := closingMark(r)
		if end == 0 || inWord(before) {
			before = r
			continue
		}
		quoted, rest, closed := cutQuotation(message, end)
		if !closed {
			return b.String() + hidden
		}
		if !isPublicText(quoted) {
			quoted = hidden
		}
		b.WriteString(quoted + string(end))
		before, message = end, rest
	}
	return b.String()
}

// closingMark is the mark that closes a quotation opened by r, or 0 if r opens none.
func closingMark(r rune) rune {
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

// isPublicID reports whether a text is the id of an intent, refund, request or account,
// or the name of a permission, which an operator needs to fix an error.
func isPublicID(text string) bool {
	prefix, rest, _ := strings.Cut(text, "_")
	switch prefix {
	case "pi", "re", "req", "acct":
		return consistsOf(rest, isLetterOrDigit)
	case "rak":
		name, found := strings.CutSuffix(rest, "_read")
		if !found {
			name, found = strings.CutSuffix(rest, "_write")
		}
		return found && consistsOf(name, func(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' })
	}
	return false
}

// consistsOf reports whether a text is not empty and every rune fits.
func consistsOf(text string, fits func(rune) bool) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !fits(r) })
}

func isLetterOrDigit(r rune) bool { return isLetter(r) || r >= '0' && r <= '9' }

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// isPublicText reports whether an error may repeat a quoted text: a public id, or the
// name of a parameter, such as automatic_payment_methods[enabled].
func isPublicText(quoted string) bool {
	if isPublicID(quoted) {
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
// accounts.
func redactIDs(text string) string {
	var b strings.Builder
	for {
		from, to := idWord(text)
		b.WriteString(text[:from])
		if from == to {
			return b.String()
		}
		b.WriteString(redactID(text[from:to]))
		text = text[to:]
	}
}

// idWord returns where the first word such as "pm_1MqLiJLkdIwHu7ix", "pi_1_secret_2" or
// "rk_test_*****QzX" begins and ends: letters, an underscore, and at least one letter,
// digit, underscore or asterisk, with dots between them. Without one it returns the end.
func idWord(text string) (from, to int) {
	for i, r := range text {
		if r != '_' || i == 0 || !isLetter(rune(text[i-1])) {
			continue
		}
		from = 1 + strings.LastIndexFunc(text[:i], func(r rune) bool { return !isLetter(r) })
		rest := text[i+1:]
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && !inID(r) })
		if end < 0 {
			end = len(rest)
		}
		if word := strings.TrimRight(rest[:end], "."); word != "" {
			return from, i + 1 + len(word)
		}
	}
	return len(text), len(text)
}

func inID(r rune) bool { return r == '_' || r == '*' || isLetterOrDigit(r) }

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
