package ordertest_test

import (
	"context"
	"errors"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// disputesBug changes what a Bank returns for an intent.
type disputesBug func(b *ordertest.Bank, id order.IntentID, all []order.Dispute, err error) ([]order.Dispute, error)

// brokenDisputes is a Bank whose list of disputes has a bug.
type brokenDisputes struct {
	*ordertest.Bank
	bug disputesBug
}

func (b brokenDisputes) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	all, err := b.Bank.Disputes(ctx, id)
	return b.bug(b.Bank, id, all, err)
}

// changeDisputes changes the list.
func changeDisputes(change func(all []order.Dispute) []order.Dispute) disputesBug {
	return func(_ *ordertest.Bank, _ order.IntentID, all []order.Dispute, err error) ([]order.Dispute, error) {
		return change(all), err
	}
}

// dropError drops the errors of a kind.
func dropError(kind order.ErrorKind) disputesBug {
	return func(_ *ordertest.Bank, _ order.IntentID, all []order.Dispute, err error) ([]order.Dispute, error) {
		if kindOf(err) == kind {
			return all, nil
		}
		return all, err
	}
}

func TestEveryBrokenListOfDisputesFailsItsPromise(t *testing.T) {
	t.Parallel()
	setStatus := func(s order.DisputeStatus) disputesBug {
		return changeDisputes(func(all []order.Dispute) []order.Dispute {
			for i := range all {
				all[i].Status = s
			}
			return all
		})
	}
	bugs := map[string]map[string]disputesBug{
		"a charge that nobody disputed has no disputes": {
			"it has one": changeDisputes(func(all []order.Dispute) []order.Dispute {
				return append(all, order.Dispute{ID: "du_9", Status: order.DisputeOpen})
			}),
		},
		"a dispute is open until the bank decides it": {
			"it stays open": setStatus(order.DisputeOpen), "it is lost at once": setStatus(order.DisputeLost),
			"its time is missing": changeDisputes(func(all []order.Dispute) []order.Dispute {
				for i := range all {
					all[i] = order.Dispute{ID: all[i].ID, Status: all[i].Status}
				}
				return all
			}),
		},
		"the disputes of an intent are those of no other": {
			"the oldest has the newest time": changeDisputes(func(all []order.Dispute) []order.Dispute {
				if len(all) > 1 {
					all[0].CreatedAt, all[1].CreatedAt = all[1].CreatedAt, all[0].CreatedAt
				}
				return all
			}),
			"only the newest is listed": changeDisputes(func(all []order.Dispute) []order.Dispute {
				return all[:min(1, len(all))]
			}),
			"those of every intent are listed": func(
				b *ordertest.Bank, _ order.IntentID, all []order.Dispute, err error,
			) ([]order.Dispute, error) {
				for _, id := range []order.IntentID{"pi_1", "pi_2"} {
					theirs, _ := b.Disputes(t.Context(), id)
					all = append(all, theirs...)
				}
				return all, err
			},
		},
		"a failed call returns no disputes": {
			"the error is dropped":               dropError(order.KindUnavailable),
			"a lost response is as good as none": dropError(order.KindUnknown),
		},
		"disputes of an unknown intent are Misconfigured": {"there are none": dropError(order.KindMisconfigured)},
	}
	covered := map[string]bool{}
	for promise, byName := range bugs {
		covered[promise] = true
		for name, bug := range byName {
			t.Run(promise+" - "+name, func(t *testing.T) {
				t.Parallel()
				wrong, right := &ordertest.Bank{Scope: "test"}, &ordertest.Bank{Scope: "test"}
				testBug(t, ordertest.DisputePromises(), promise,
					disputesUnderTest(wrong, brokenDisputes{wrong, bug}), disputesUnderTest(right, right))
			})
		}
	}
	if missing := uncovered(ordertest.DisputePromises(), covered); len(missing) > 0 {
		t.Errorf("no broken double for the promises %q", missing)
	}
}

// kindOf returns the kind of a *order.PaymentError, or "".
func kindOf(err error) order.ErrorKind {
	if e, ok := errors.AsType[*order.PaymentError](err); ok {
		return e.Kind
	}
	return ""
}
