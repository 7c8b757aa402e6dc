package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
	"orderonce/scripts/orders/shell"
)

// doubtfulStore has one doubtful receipt, and one that was delivered.
func doubtfulStore(t *testing.T) *receipttest.Memory {
	t.Helper()
	m, at := new(receipttest.Memory), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, i := range []receipt.Item{
		{OrderID: "ORD-1", Key: receipt.Paid, Status: receipt.Doubtful, Failure: "no_response", Attempt: 1, Revision: 2, UpdatedAt: at},
		{OrderID: "ORD-1", Key: "refund#R-1", Status: receipt.Delivered, Message: "message-1", Attempt: 1, Revision: 3, UpdatedAt: at},
	} {
		if err := m.Save(t.Context(), receipt.Item{OrderID: i.OrderID, Key: i.Key}, i); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestReceiptsAreListed(t *testing.T) {
	t.Parallel()
	const doubt = "ORD-1  paid  doubtful since 2026-11-21T12:00:00Z  no_response\n"
	const delivered = "ORD-1  refund#R-1  delivered since 2026-11-21T12:00:00Z  message-1\n"
	for claim, tt := range map[string]struct {
		command listReceipts
		json    bool
		want    string
		code    int
	}{
		"the doubtful ones": {listReceipts{}, false, doubt + "receipts: 1, doubtful: 1\n", 2},
		"those of an order": {listReceipts{Order: "ORD-1"}, false, doubt + delivered + "receipts: 2, doubtful: 1\n", 2},
		"none":              {listReceipts{Order: "ORD-2"}, false, "receipts: 0, doubtful: 0\n", 0},
		"as JSON": {
			listReceipts{},
			true,
			`{"orderId":"ORD-1","receipt":"paid","status":"doubtful","failure":"no_response","attempt":1,` +
				`"updatedAt":"2026-11-21T12:00:00Z"}` + "\n", 2,
		},
	} {
		var out, errOut strings.Builder
		err := tt.command.list(t.Context(), shell.Shell{Out: &out, ErrOut: &errOut, JSON: tt.json}, doubtfulStore(t))
		code := 0
		if e, ok := errors.AsType[shell.LeftError](err); ok {
			code = e.ExitCode()
		}
		if out.String() != tt.want || code != tt.code {
			t.Errorf("%s: got %q, exit code %d, want %q and %d", claim, out.String(), code, tt.want, tt.code)
		}
	}
}

func TestTheGuideShowsADoubtAsItIsListed(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/receipts.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_ = listReceipts{}.list(t.Context(), shell.Shell{Out: &out}, doubtfulStore(t)) // one is left
	if want := strings.ReplaceAll(out.String(), "ORD-1 ", "ORD-1001 "); !strings.Contains(string(guide), "```\n"+want+"```") {
		t.Errorf("docs/guides/receipts.md lacks\n%s", want)
	}
}

func TestAReceiptIsResolved(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		command resolveReceipt
		typed   string
		printed string
		err     string // "" for none
		status  receipt.Status
	}{
		"as sent": {
			command: resolveReceipt{Receipt: "paid", Sent: true}, typed: "ORD-1\n",
			printed: "ORD-1  paid  sent since 2026-11-22T12:00:00Z  resolved_by_operator\n", status: receipt.Sent,
		},
		"as not sent, with how to send it": {
			command: resolveReceipt{Receipt: "paid", NotSent: true, Yes: true},
			printed: "resolved_by_operator\nto send it: orders republish ORD-1\n", status: receipt.Failed,
		},
		"not without the word": {
			command: resolveReceipt{Receipt: "paid", Sent: true},
			typed:   "yes\n", err: shell.ErrNotConfirmed.Error(), status: receipt.Doubtful,
		},
		"not one that was delivered": {
			command: resolveReceipt{Receipt: "refund#R-1", NotSent: true, Yes: true},
			err:     "receipt is delivered: only a doubtful one", status: receipt.Doubtful,
		},
		"not one that does not exist": {
			command: resolveReceipt{Receipt: "refund#R-2", NotSent: true, Yes: true},
			err:     "receipt is not there", status: receipt.Doubtful,
		},
		"not under the name of something": {
			command: resolveReceipt{Receipt: "R-1", NotSent: true, Yes: true},
			err:     `receipt "R-1": want "paid" or`, status: receipt.Doubtful,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			store := doubtfulStore(t)
			var out strings.Builder
			tt.command.Order = "ORD-1"
			now := func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
			err := tt.command.resolve(t.Context(), shell.Shell{In: strings.NewReader(tt.typed), Out: &out, Now: now}, store)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.printed) {
				t.Errorf("printed %q, want %q", out.String(), tt.printed)
			}
			if i, err := store.Load(t.Context(), "ORD-1", receipt.Paid); err != nil || i.Status != tt.status {
				t.Errorf("receipt is %s, %v, want %s", i.Status, err, tt.status)
			}
		})
	}
}

// The commands themselves, over a table.
func TestADoubtInTheTableIsListedAndResolved(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	table := h.Table + "-receipts"
	if err := dynamodbtest.CreateReceipts(t.Context(), h.Client, table); err != nil {
		t.Fatal(err)
	}
	doubt, err := doubtfulStore(t).Load(t.Context(), "ORD-1", receipt.Paid)
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewReceipts(h.Config, table).Save(t.Context(), receipt.Item{}, doubt); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	sh := testShell([]string{"RECEIPTS_TABLE=" + table}, "", &out)
	sh.AWS = func(context.Context) (aws.Config, error) { return h.Config, nil }
	var left shell.LeftError
	if err := (listReceipts{}).Run(t.Context(), sh); !errors.As(err, &left) || left.ExitCode() != 2 {
		t.Errorf("list: got %v, want exit code 2\n%s", err, out.String())
	}
	if err := (resolveReceipt{Order: "ORD-1", Receipt: "paid", Sent: true, Yes: true}).Run(t.Context(), sh); err != nil {
		t.Errorf("resolve: %v", err)
	}
	if err := (listReceipts{}).Run(t.Context(), sh); err != nil {
		t.Errorf("list again: %v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "table "+table+" in "+h.Config.Region+"\n") {
		t.Errorf("printed %q, want where it writes", out.String())
	}
}

func TestReceiptsAreParsed(t *testing.T) {
	t.Parallel()
	for line, valid := range map[string]bool{
		"receipts": true, "receipts ORD-1": true, "receipts resolve ORD-1 paid --sent": true,
		"receipts resolve ORD-1 paid": false, "receipts resolve ORD-1 paid --sent --not-sent": false, "receipts resolve ORD-1 --sent": false,
	} {
		parser, err := kong.New(new(commands))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(line)); (err == nil) != valid {
			t.Errorf("orders %s: %v, want valid %v", line, err, valid)
		}
	}
}
