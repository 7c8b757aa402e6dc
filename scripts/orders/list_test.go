package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestList(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	process(t, d.store, d.payments, "ORD-2", "pm_usBankAccount_processing")
	process(t, d.store, d.payments, "ORD-3", "pm_card_authenticationRequired")
	process(t, d.store, d.payments, "ORD-4", "pm_card_chargeDeclined")
	put := ordertest.Order("ORD-5")
	_, err := (&dynamodb.Registrations{Store: d.store}).Register(t.Context(), intake.Registration{
		OrderID: put.ID(), Fingerprint: put.Fingerprint(), Total: put.Total(), Caller: "shop", At: noon(),
	})
	must(t, err)
	for claim, tt := range map[string]struct {
		command list
		later   time.Duration
		want    []string // ids and statuses, in any order
		err     string
	}{
		"those that wait, through the index": {
			command: list{Status: []order.Status{order.Pending, order.ActionRequired}},
			want:    []string{"ORD-2 pending", "ORD-3 action_required"},
		},
		"nothing is due at once": {command: list{Due: true}},
		"what is due two hours later": {
			command: list{Due: true}, later: 2 * time.Hour, want: []string{"ORD-2 pending", "ORD-5 not_sent"},
		},
		"those that may not have been sent": {
			command: list{Status: []order.Status{intake.NotSent}}, want: []string{"ORD-5 not_sent"},
		},
		"all of them, by a scan": {
			command: list{Scan: true},
			want:    []string{"ORD-1 paid", "ORD-2 pending", "ORD-3 action_required", "ORD-4 declined"},
		},
		"paid ones, by a scan":     {command: list{Scan: true, Status: []order.Status{order.Paid}}, want: []string{"ORD-1 paid"}},
		"those that changed since": {command: list{Scan: true, Since: noon().Add(time.Hour)}},
		"a scan that nobody allowed": {
			command: list{Status: []order.Status{order.Paid}}, err: "read request units: add --scan, or list what waits with --due",
		},
		"a status that does not exist": {command: list{Status: []order.Status{"closed"}}, err: `--status "closed": want one of open, paid, `},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			sh := testShell(d.environ, "", &out)
			sh.Now = func() time.Time { return noon().Add(tt.later) }
			err := tt.command.Run(t.Context(), sh)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			var got []string
			for row := range strings.Lines(out.String()) {
				got = append(got, strings.Join(strings.Fields(row)[:2], " "))
			}
			if diff := cmp.Diff(sorted(got), tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
}

// A reconcile run begins at a shard of the index that the time chooses. A list does not.
func TestTwoListsHaveTheSameOrder(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for _, id := range []order.ID{"ORD-1", "ORD-2", "ORD-3", "ORD-4", "ORD-5", "ORD-6"} {
		process(t, d.store, d.payments, id, "pm_usBankAccount_processing")
	}
	first := ""
	for minute := range 16 {
		var out strings.Builder
		sh := testShell(d.environ, "", &out)
		sh.Now = func() time.Time { return noon().Add(time.Duration(minute) * time.Minute) }
		must(t, list{Status: []order.Status{order.Pending}}.Run(t.Context(), sh))
		if first == "" {
			first = out.String()
		}
		if diff := cmp.Diff(out.String(), first); diff != "" {
			t.Errorf("after %d minutes (-got +first):\n%s", minute, diff)
		}
	}
}

func TestListStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for _, id := range []order.ID{"ORD-1", "ORD-2", "ORD-3"} {
		process(t, d.store, d.payments, id, "pm_usBankAccount_processing")
	}
	for limit, want := range map[int]int{0: 3, 2: 2, 3: 3} {
		var out, errOut strings.Builder
		sh := testShell(d.environ, "", &out)
		sh.ErrOut = &errOut
		must(t, list{Status: []order.Status{order.Pending}, Limit: limit}.Run(t.Context(), sh))
		if got := strings.Count(out.String(), "\n"); got != want || (errOut.Len() > 0) != (want < 3) {
			t.Errorf("--limit %d: got %d orders and %q, want %d", limit, got, &errOut, want)
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// An order that cannot be decoded is named at the end, behind those that match.
func TestListPrintsWhatChangedSince(t *testing.T) {
	t.Parallel()
	found := func(yield func(order.Record, error) bool) {
		_ = yield(order.Record{OrderID: "BAD"}, order.ErrCorrupt) &&
			yield(order.Record{OrderID: "OLD", CreatedAt: noon(), UpdatedAt: noon()}, nil) &&
			yield(order.Record{OrderID: "NEW", CreatedAt: noon(), UpdatedAt: noon().Add(2 * time.Hour)}, nil)
	}
	var out strings.Builder
	err := list{Since: noon().Add(time.Hour)}.print(testShell(nil, "", &out), found)
	if !errors.Is(err, order.ErrCorrupt) || !strings.Contains(err.Error(), `order "BAD"`) {
		t.Errorf("got %v, want the order that is corrupt", err)
	}
	if got := out.String(); !strings.HasPrefix(got, "NEW ") || strings.Count(got, "\n") != 1 {
		t.Errorf("printed %q, want the order that changed", got)
	}
}
