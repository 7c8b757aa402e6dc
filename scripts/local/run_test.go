package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

func atNoon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.Local) }

func TestUpPrintsTheFateOfAnEMailWithoutItsAddress(t *testing.T) {
	t.Parallel()
	event := func(detailType string) json.RawMessage {
		return json.RawMessage(`{"detail-type":"` + detailType + `","time":"2026-11-22T14:13:20Z","detail":{"mail":{
			"destination":["buyer@shop.invalid"],"commonHeaders":{"to":["buyer@shop.invalid"],"subject":"Receipt for order ORD-1"},
			"tags":{"orderonce-order":["` + system.MailTag("ORD-1") + `"]}}}}`)
	}
	var b strings.Builder
	loses := printMail(&b, atNoon)
	for _, e := range []json.RawMessage{event("Email Sent"), event("Email Bounced"), json.RawMessage(`{`)} {
		if loses(e) {
			t.Errorf("%s is lost, want every event to arrive", e)
		}
	}
	if want := "12:00:00  e-mail of ORD-1: Email Bounced, Receipt for order ORD-1\n"; b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}

func TestABrokenInvariantIsAnError(t *testing.T) {
	t.Parallel()
	err := showChecks(io.Discard, []invariants.Result{
		{ID: "I1", Broken: []string{"order A was charged 2 times"}}, {ID: "I2"}, {ID: "I13", Broken: []string{"a leak"}},
	})
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), ": I1, I13") {
		t.Errorf("error = %v, want errBroken that names I1 and I13", err)
	}
}
