package stripe

import (
	"regexp"
	"strings"
)

// ids are words such as "pm_1MqLiJLkdIwHu7ix", "pi_1_secret_2" and "rk_test_*****QzX".
var ids = regexp.MustCompile(`[A-Za-z]+_[\w*.]*[\w*]`)

// redact takes payment data and secrets out of a message of Stripe's, which likes to repeat what it was sent. Ids of
// intents, requests and accounts stay, and so do words such as "payment_method": what makes any other word an id is a
// capital, a digit or a prefix that is known to be used before neither, as in "pm_card_visa".
func redact(message string) string {
	return ids.ReplaceAllStringFunc(message, func(word string) string {
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
			return prefix + "_[redacted]"
		}
		return word
	})
}

// redacted is a network's error. Some quote what the other side sent.
type redacted struct{ error }

func (e redacted) Error() string { return redact(e.error.Error()) }
func (e redacted) Unwrap() error { return e.error }
