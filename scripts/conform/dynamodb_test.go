package main_test

import "fmt"

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
		answers("update-path", `"n":\{"N":"1"\},?`, ""),
		sends("names-reserved", "SET status =", "SET condition1 ="),
		sends("names-unused", `"ExpressionAttributeNames":\{\},?`, ""),
		sends("item-size", "xxxxxx+", "x"),
		// The first item of the transaction is written before it.
		{
			"dynamodb/transaction-all", dynamoProxy, "forwarded, err := p.forward(r, call.Request)\n",
			"if call.Operation == transaction && $ {\n" +
				"_, _ = p.forward(r, edit(call.Request, `.*?(\"TransactItems\":.*?\"TableName\":\"[^\"]*\"\\}\\}),.*`, `{~1]}`))\n}\n" +
				"forwarded, err := p.forward(r, call.Request)\n",
		},
		answers("transaction-order", `("CancellationReasons":\[)(.*?),(\{"Code":"None"\})`, "~1~3,~2"),
		sends("transaction-item", "ALL_OLD", "NONE"),
		sends("transaction-100", `,\{"Update":[^=]*"101-100".*?\}\}\]`, "]"),
		sends("transaction-twice", `(.*"sk":\{"S":")a`, "~1b"),
		sends("token-again", `"ClientRequestToken":"[^"]*",?`, ""),
		sends("token-other", `"ClientRequestToken":"[^"]*",?`, ""),
		sends("read-consistent", `"n":\{"N":"9"\}`, `"n":{"N":"8"}`),
		sends("query-order", `("ConsistentRead":true,"Expr)`, `"ScanIndexForward":false,~1`),
		answers("query-pages", "LastEvaluatedKey", "Last"),
		answers("query-megabyte", "LastEvaluatedKey", "Last"),
		sends("scan-filter", `"Limit":1,`, ""),
		answers("ttl", `"Item"`, `"Expired"`),
		sends("index-sparse", "REMOVE openShard, dueAt", "REMOVE nothing"),
		sends("index-keys", "KEYS_ONLY", "ALL"),
		sends("index-order", `("ExpressionAttributeValues":.*"IndexName")`, `"ScanIndexForward":false,~1`),
	}
}
