package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const dynamoProxy = "adapters/dynamodb/dynamodbtest/proxy.go"

// sends is a drift of the proxy: requests that match a regular expression are changed. In
// the text that replaces a match, ~1 is its first group.
func sends(rule, match, change string) drift {
	const place = "forwarded, err := p.forward(r, call.Request)\n"
	return drift{"dynamodb/" + rule, dynamoProxy, place, fmt.Sprintf("if $ {\ncall.Request = edit(call.Request, %q, %q)\n}\n%s", match, change, place)}
}

// answers is the same for responses.
func answers(rule, match, change string) drift {
	const place = "p.current().after(call)\n"
	return drift{"dynamodb/" + rule, dynamoProxy, place, fmt.Sprintf(
		"if $ {\nforwarded.body = edit(forwarded.body, %q, %q)\nforwarded.header.Del(\"Content-Length\")\n"+
			"forwarded.header.Del(\"X-Amz-Crc32\")\n}\n%s", match, change, place,
	)}
}

func dynamoDrifts() []drift {
	const absent = `"ConditionExpression":"attribute_not_exists\(orderId\)",?`
	return []drift{
		sends("condition-unmet", absent, ""),
		sends("condition-item", "ALL_OLD", "NONE"),
		sends("condition-absent", `attribute_not_exists\(orderId`, "attribute_not_exists(nothing"),
		sends("condition-missing", `"(nothing < :v)"`, `"~1 OR attribute_not_exists(nothing)"`),
		sends("condition-number", `"N":`, `"S":`),
		sends("update-creates", `("Key":)`, `"ConditionExpression":"attribute_exists(orderId)",~1`),
		sends("update-number", `if_not_exists\(n, :zero\) -`, ":zero -"),
		answers("update-path", `"n":\{"N":"1"`, `"n":{"N":"0"`),
		sends("names-reserved", "SET status =", "SET condition1 ="),
		sends("item-size", "xxxxxx+", "x"),
		// The first item of the transaction is written before it.
		{
			"dynamodb/transaction-all", dynamoProxy, "forwarded, err := p.forward(r, call.Request)\n",
			"if call.Operation == transaction && $ {\n" +
				"_, _ = p.forward(r, edit(call.Request, `.*?(\"TransactItems\":.*?\"TableName\":\"[^\"]*\"\\}\\}),.*`, `{~1]}`))\n}\n" +
				"forwarded, err := p.forward(r, call.Request)\n",
		},
		answers("transaction-reasons", `("CancellationReasons":\[)(.*?),(\{"Code":"None"\})`, "~1~3,~2"),
		sends("transaction-100", `,\{"Update":[^=]*"i100".*?\}\}\]`, "]"),
		sends("transaction-twice", `(.*"sk":\{"S":")a`, "~1b"),
		sends("token", `"ClientRequestToken":"[^"]*",?`, ""),
		sends("read-consistent", `"n":\{"N":"9"\}`, `"n":{"N":"8"}`),
		sends("query-order", `("ConsistentRead":true,"Expr)`, `"ScanIndexForward":false,~1`),
		answers("query-pages", "LastEvaluatedKey", "Last"),
		sends("scan-filter", `"Limit":3,`, ""),
		answers("ttl", `"Item"`, `"Expired"`),
		sends("index-sparse", "REMOVE openShard, dueAt", "REMOVE nothing"),
		sends("index-order", `("ExpressionAttributeValues":.*"IndexName")`, `"ScanIndexForward":false,~1`),
	}
}

// gaps are the rules that dynalite 4.0.0 does not keep, with outcomes and reasons.
func gaps() map[string]string {
	const lacks = "lacking" // TransactWriteItems, UpdateTimeToLive
	return map[string]string{
		"dynamodb/condition-item":  "broken", // it ignores ReturnValuesOnConditionCheckFailure, which is of 2023
		"dynamodb/transaction-all": lacks, "dynamodb/transaction-reasons": lacks, "dynamodb/transaction-100": lacks,
		"dynamodb/transaction-twice": lacks, "dynamodb/token": lacks, "dynamodb/ttl": lacks,
	}
}

// Others wrote dynalite, from what they saw DynamoDB do, so a rule that it keeps is more
// than our reading of a page. A gap that it closes must leave the list.
func TestDynaliteKeepsEveryRuleButItsKnownGaps(t *testing.T) {
	if _, err := os.Stat("dynalite/node_modules/dynalite"); err != nil {
		if os.Getenv("ORDERONCE_ALL") == "1" || os.Getenv("CI") == "true" {
			t.Fatal("dynalite is not installed: run make conform-dynalite, which needs npm")
		}
		t.Skip("dynalite is not installed: run make conform-dynalite, which needs npm")
	}
	server := exec.CommandContext(t.Context(), "node", "-e", `require("dynalite")({createTableMs: 0, deleteTableMs: 0}).`+
		`listen(0, "127.0.0.1", function () { console.log(this.address().port) })`)
	server.Dir = "dynalite"
	out, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start()) // it ends with the context of the test
	t.Cleanup(func() { _ = server.Wait() })
	var port int
	_, err = fmt.Fscan(bufio.NewReader(out), &port)
	must(t, err)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "pretend")
	}
	t.Setenv("AWS_REGION", "us-east-1")
	got := map[string]string{}
	for _, is := range results(t, "dynamodb", "--endpoint", fmt.Sprintf("http://127.0.0.1:%d", port)) {
		if is.Outcome != "kept" {
			got[is.Rule] = is.Outcome
		}
	}
	if diff := cmp.Diff(got, gaps()); diff != "" {
		t.Errorf("rules that dynalite does not keep (-got +want):\n%s", diff)
	}
}
