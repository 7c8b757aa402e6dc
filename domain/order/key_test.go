package order_test

import (
	"strings"
	"testing"

	"orderonce/domain/order"
)

func TestKeysConsistOfScopeOrderStepAndAttempt(t *testing.T) {
	for want, k := range map[string]order.Key{
		"prod/order/ORD-1/prepare":   order.PrepareKey("prod", "ORD-1"),
		"prod/order/ORD-1/prepare/2": order.PrepareAgainKey("prod", "ORD-1", 2),
		"prod/order/ORD-1/confirm/1": order.ConfirmKey("prod", "ORD-1", 1),
	} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	scope, id := order.Scope(strings.Repeat("s", 32)), order.ID(strings.Repeat("i", 64))
	for _, k := range []order.Key{order.PrepareAgainKey(scope, id, 1<<62), order.ConfirmKey(scope, id, 1<<62)} {
		if got := len(k.String()); got > 131 {
			t.Errorf("got a key of %d characters, want at most 131", got)
		}
	}
}

func TestScopeIsAShortName(t *testing.T) {
	for _, s := range []string{"a", "z", "staging-eu", "az09-", strings.Repeat("s", 32)} {
		if got, err := order.NewScope(s); string(got) != s || err != nil {
			t.Errorf("%q: got %q, %v, want the scope", s, got, err)
		}
	}
	for _, s := range []string{
		"", "0", "1a", "-", "-a", "Prod", "aA", "aZ", "a/b", "a b", "\u00e4", "a_b", "`", "{", "a@", "a[", strings.Repeat("s", 33),
	} {
		if got, err := order.NewScope(s); got != "" || err == nil || !strings.Contains(err.Error(), order.ScopeRule) {
			t.Errorf("%q: got %q, %v, want an error with the rule", s, got, err)
		}
	}
}
