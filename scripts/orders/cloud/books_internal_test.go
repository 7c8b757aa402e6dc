package cloud

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

func TestAListContinuesAfterAFailureThatPasses(t *testing.T) {
	down := &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("429")}
	wrong := &order.PaymentError{Kind: order.KindMisconfigured, Err: errors.New("403")}
	for claim, tt := range map[string]struct {
		fails []error // of the calls; nil is a page
		pages int
		took  time.Duration
		err   error
	}{
		"no failure":                       {[]error{nil, nil, nil}, 3, 200 * time.Millisecond, nil},
		"a page after two failures":        {[]error{nil, down, down, nil, nil}, 3, 3200 * time.Millisecond, nil},
		"failures on end":                  {slices.Repeat([]error{down}, 9), 0, 31 * time.Second, down},
		"failures between pages":           {[]error{down, nil, down, nil, down, nil}, 3, 3200 * time.Millisecond, nil},
		"a failure that needs a person":    {[]error{nil, wrong}, 1, 100 * time.Millisecond, wrong},
		"an end of the context, as Ctrl-C": {[]error{nil, context.Canceled}, 1, 100 * time.Millisecond, context.Canceled},
	} {
		t.Run(claim, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				read := func(after string) (audit.Page[int], error) {
					calls++
					next := map[bool]string{true: after + "x"}[len(after) < 2]
					return audit.Page[int]{Items: []int{len(after) + 1}, Next: next}, tt.fails[calls-1]
				}
				var got []int
				var err error
				for page, failed := range patient(t.Context(), NewPace(10), "", read) {
					if err = failed; err == nil {
						got = append(got, page.Items...)
					}
				}
				if !slices.Equal(got, []int{1, 2, 3}[:tt.pages]) || !errors.Is(err, tt.err) {
					t.Errorf("got pages %v, %v, want %d, %v", got, err, tt.pages, tt.err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}
