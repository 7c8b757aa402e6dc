package main

import (
	"os"
	"strings"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/receipt"
)

func TestReceipts(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.engine.Table + "-receipts"
	must(t, dynamodbtest.Create(t.Context(), d.engine.Client, dynamodbtest.ReceiptsDefinition(table)))
	store := receipttable.New(d.engine.Config, table)
	for _, i := range []receipt.Item{
		{OrderID: "ORD-1001", Key: receipt.Paid, Status: receipt.Doubtful, Failure: "no_response"},
		{OrderID: "ORD-1001", Key: "refund#R-1", Status: receipt.Delivered, Message: "message-1"},
		{OrderID: "ORD-2", Key: receipt.Paid, Status: receipt.Doubtful, Failure: "no_response"},
	} {
		i.Attempt, i.Revision, i.UpdatedAt = 1, 2, noon()
		_, err := store.Save(t.Context(), receipt.Item{OrderID: i.OrderID, Key: i.Key}, i)
		must(t, err)
	}
	d.environ = append(d.environ, "RECEIPTS_TABLE="+table)
	const doubt = "ORD-1001  paid  doubtful since 2026-11-21T12:00:00Z  no_response\n"
	d.steps(
		step{line: "receipts", want: doubt + "receipts: 2, doubtful: 2\n2 doubtful receipts: see orders receipts resolve", code: 2},
		step{
			line: "receipts ORD-1001", code: 2,
			want: doubt + "ORD-1001  refund#R-1  delivered since 2026-11-21T12:00:00Z  message-1\nreceipts: 2, doubtful: 1",
		},
		step{
			line: "--json receipts ORD-2", code: 2,
			want: `{"orderId":"ORD-2","receipt":"paid","status":"doubtful","failure":"no_response","attempt":1,` +
				`"updatedAt":"2026-11-21T12:00:00.123Z"}`,
		},
		step{
			line: "receipts resolve ORD-1001 paid --sent", typed: "yes\n", code: 1, claim: "not the order id",
			want: "table " + table + " in \n" + doubt + "nothing was changed",
		},
		step{
			line: "receipts resolve ORD-1001 paid --sent", typed: "ORD-1001\n", later: day,
			want: "ORD-1001  paid  sent since 2026-11-22T12:00:00Z  resolved_by_operator",
		},
		step{
			line: "receipts resolve ORD-2 paid --not-sent --yes",
			want: "failed since\nresolved_by_operator\nto send it: orders republish ORD-2",
		},
		step{line: "receipts resolve ORD-1001 refund#R-1 --sent --yes", code: 1, want: "receipt is delivered: only a doubtful one"},
		step{line: "receipts resolve ORD-1001 refund#R-2 --sent --yes", code: 1, want: "receipt is not there"},
		step{line: "receipts resolve ORD-1001 R-1 --sent --yes", code: 1, want: `receipt "R-1": want "paid" or`},
		step{line: "receipts", want: "receipts: 0, doubtful: 0"},
	)
	guide, err := os.ReadFile("../../docs/guides/receipts.md")
	must(t, err)
	if !strings.Contains(string(guide), "```\n"+doubt+"receipts: 1, doubtful: 1\n```") {
		t.Errorf("docs/guides/receipts.md does not show a doubt as it is listed:\n%s", doubt)
	}
}
