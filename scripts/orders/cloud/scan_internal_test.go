package cloud

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
)

// responses are those of a pretend DynamoDB, in order. from are the keys after which the
// scans began.
type responses struct {
	all  []string
	from []string
}

func (p *responses) Do(r *http.Request) (*http.Response, error) {
	var in struct{ ExclusiveStartKey map[string]struct{ S string } }
	err := json.NewDecoder(r.Body).Decode(&in)
	p.from = append(p.from, in.ExclusiveStartKey["orderId"].S+"/"+in.ExclusiveStartKey["sk"].S)
	status, text := http.StatusOK, p.all[len(p.from)-1]
	if strings.Contains(text, "Exception") {
		status = http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, err
}

func (p *responses) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", HTTPClient: p, BaseEndpoint: aws.String("http://pretend.invalid"), Credentials: aws.AnonymousCredentials{},
	}
}

func (p *responses) store() *dynamodb.Store { return dynamodb.New(p.config(), "orders") }

func TestScansOfATableOfOnePageKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &responses{all: slices.Repeat([]string{`{"Items":[]}`}, 10)}
		d, pace := Deployment{AWS: p.config(), Env: Env{Table: "orders"}}, NewPace(4)
		began := time.Now() //nolint:forbidigo // virtual time
		for range p.all {
			if _, err := d.CountAll(t.Context(), pace); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2250*time.Millisecond { //nolint:forbidigo // virtual time
			t.Errorf("got 10 scans in %v, want 2.25s", took)
		}
	})
}

// A page may have no order: DynamoDB filters what it has read. An order that cannot be
// decoded is one of its page.
func TestScan(t *testing.T) {
	const order1 = `{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"partially_refunded"},"fingerprint":{"S":"v1:0"},` +
		`"amount":{"N":"1250"},"currency":{"S":"usd"},"attempt":{"N":"1"},"seq":{"N":"2"},"intentId":{"S":"pi_1"},` +
		`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"},"refundedOutside":{"N":"250"}}`
	p := &responses{all: []string{
		`{"Items":[` + order1 + `],"LastEvaluatedKey":{"orderId":{"S":"ORD-1"},"sk":{"S":"order"}}}`,
		`{"Items":[],"LastEvaluatedKey":{"orderId":{"S":"ORD-2"},"sk":{"S":"event#000001"}}}`,
		`{"Items":[{"orderId":{"S":"ORD-3"},"sk":{"S":"order"},"status":{"S":"paid"}}]}`,
	}}
	var all []Row
	for after, more := "ORD-0/order", true; more; more = after != "" {
		rows, next, err := scan(t.Context(), p.store(), after)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, rows...), next
	}
	if diff := cmp.Diff(p.from, []string{"ORD-0/order", "ORD-1/order", "ORD-2/event#000001"}); diff != "" {
		t.Errorf("calls begin after (-got +want):\n%s", diff)
	}
	if len(all) != 2 || all[0].Status != order.PartiallyRefunded || all[0].Account.Outside != 250 || all[0].err != nil ||
		all[1].OrderID != "ORD-3" || !errors.Is(all[1].err, order.ErrCorrupt) {
		t.Errorf("got %+v, want ORD-1 with its account, and ORD-3 with ErrCorrupt", all)
	}
	for after, calls := range map[string]int{"": 1, "ORD-1/order": 1, "no position": 0} {
		p := &responses{all: []string{`{"__type":"AccessDeniedException"}`}}
		rows, _, err := scan(t.Context(), p.store(), after)
		if len(rows) > 0 || err == nil || !strings.Contains(err.Error(), after) || len(p.from) != calls {
			t.Errorf("after %q: got %v, %v after %d calls, want an error that names it after %d", after, rows, err, len(p.from), calls)
		}
	}
}
