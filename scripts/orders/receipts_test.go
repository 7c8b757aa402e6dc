package main

import (
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/receipt"
)

func TestReceipts(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.create("receipts", dynamodbtest.ReceiptsDefinition)
	store := receipttable.New(d.engine.Config, table)
	for _, i := range []receipt.Item{
		{OrderID: "ORD-1001", Key: receipt.Paid, Status: receipt.Doubtful, Failure: "no_response"},
		{OrderID: "ORD-1001", Key: "refund#R-1", Status: receipt.Delivered, Message: "message-1"},
		{OrderID: "ORD-2", Key: receipt.Paid, Status: receipt.Doubtful, Failure: "no_response"},
	} {
		i.Attempt, i.Revision, i.CreatedAt, i.UpdatedAt = 1, 2, noon(), noon()
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
			want: "table " + table + " in \nsent      " + doubt + "Type the order id to record it: yes\nnothing was changed",
		},
		step{
			line: "receipts resolve ORD-1001 paid --sent", typed: "ORD-1001\n", later: day,
			want: "ORD-1001  paid  sent since 2026-11-22T12:00:00Z  resolved_by_operator",
		},
		step{
			line: "receipts resolve ORD-1001 paid --not-sent --yes", claim: "it was not, after all",
			want: "not-sent  ORD-1001\ngets it twice\nORD-1001  paid  failed since\nto send it: orders republish ORD-1001",
		},
		step{
			line: "receipts resolve --list " + d.file("ORD-2 paid sent", "", "ORD-2 not-sent"), code: 1,
			want: "--list: line 3: want an orderId",
		},
		step{
			line:  "receipts resolve --list " + d.file("ORD-2 paid not-sent", "ORD-1001 refund#R-1 not-sent", "ORD-1001 paid sent"),
			typed: "2\n", code: 2,
			want: "not-sent  ORD-2\nsent      ORD-1001  paid  failed\nType the number of receipts above to record it: 2\n" +
				"ORD-2  paid  failed\nto send it: orders republish ORD-2\nORD-1001  paid  sent\n" +
				"receipt refund#R-1 of order \"ORD-1001\": receipt is delivered: neither in doubt nor decided by a person\nleft as they were: 1",
		},
		step{line: "receipts again ORD-2 refund#R-1 --yes", code: 1, want: "receipt is not there: only one that was sent"},
		step{
			line: "receipts again ORD-1001 refund#R-1", typed: "ORD-1001\n",
			want: "again     ORD-1001  refund#R-1  delivered\ngets it twice\nORD-1001  refund#R-1  failed\nresolved_by_operator\nto send it: ",
		},
		step{line: "receipts resolve ORD-1001 refund#R-2 --sent --yes", code: 1, want: "receipt is not there"},
		step{line: "receipts resolve ORD-1001 R-1 --sent --yes", code: 1, want: `receipt "R-1": want "paid" or`},
		step{line: "receipts ORD-1001", want: "paid  sent since\nrefund#R-1  failed since\nreceipts: 2, doubtful: 0, to be sent: 1", code: 2},
		step{
			line: "receipts", code: 2,
			want: "ORD-1001  refund#R-1  failed\nORD-2  paid  failed\nreceipts: 2, doubtful: 0, to be sent: 2\n" +
				"2 receipts to be sent: orders republish",
		},
	)
}
