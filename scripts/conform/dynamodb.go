package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
)

// dynamoRun calls DynamoDB. Its table is the definition of the orders table.
type dynamoRun struct {
	*Run

	db    *sdk.Client
	table string
}

// dynamoRule returns a rule of DynamoDB, whose check has an empty table.
func dynamoRule(id, says, source string, check func(dynamoRun)) Rule {
	return Rule{ID: "dynamodb/" + id, Says: says, Source: source, Check: func(r *Run) {
		d := dynamoRun{r, sdk.NewFromConfig(r.Config), r.Name("table")}
		definition := dynamodbtest.TableDefinition(d.table)
		definition.Tags = []types.Tag{{Key: aws.String("orderonce"), Value: aws.String("conform")}}
		r.Defer(func(ctx context.Context) error { return d.drop(ctx) })
		r.Must(dynamodbtest.Create(r.Context, d.db, definition))
		check(d)
	}}
}

// drop deletes the table, if there is one.
func (d dynamoRun) drop(ctx context.Context) error {
	err := dynamodbtest.DropTable(ctx, d.db, d.table)
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil
	}
	return err
}

// did is "ok" or the code of an error, with the codes of the reasons of a transaction. It
// ends the check on an error that says nothing about a rule.
func (d dynamoRun) did(err error) string {
	code, _ := codeOf(err)
	switch kindOf(err) {
	case none:
		return ok
	case lacks, throttled, denied, lost:
		d.Must(err)
	case refused:
	}
	for _, reason := range reasons(err) {
		code += " " + aws.ToString(reason.Code)
	}
	return code
}

// reasons are those of a canceled transaction.
func reasons(err error) []types.CancellationReason {
	canceled, _ := errors.AsType[*types.TransactionCanceledException](err)
	if canceled == nil {
		return nil
	}
	return canceled.CancellationReasons
}

// Outcomes of a call.
const (
	ok         = "ok"
	unmet      = "ConditionalCheckFailedException"
	validation = "ValidationException"
	canceled   = "TransactionCanceledException"
)

// item is an item of the table, with attributes in pairs of name and value.
func item(id, sk string, attributes ...any) dynamodb.Item {
	i := dynamodb.Item{"orderId": dynamodb.Text(id), "sk": dynamodb.Text(sk)}
	for n := 0; n < len(attributes); n += 2 {
		i[attributes[n].(string)] = attribute(attributes[n+1])
	}
	return i
}

func attribute(v any) types.AttributeValue { //nolint:ireturn // the SDK's type
	switch v := v.(type) {
	case string:
		return dynamodb.Text(v)
	case int:
		return dynamodb.Number(v)
	case dynamodb.Item:
		return &types.AttributeValueMemberM{Value: v}
	}
	panic(fmt.Sprintf("no attribute is a %T", v))
}

// line shows an item as "a=1 b=x", in the order of its names.
func line(i dynamodb.Item) string {
	words := make([]string, 0, len(i))
	for name, value := range i {
		text := ""
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			text = v.Value
		case *types.AttributeValueMemberN:
			text = v.Value
		case *types.AttributeValueMemberM:
			text = "{" + line(v.Value) + "}"
		default:
			text = fmt.Sprintf("%T", v)
		}
		words = append(words, name+"="+text)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// put puts an item on a condition, which may be empty, with values for its placeholders.
func (d dynamoRun) put(i dynamodb.Item, condition string, values ...any) error {
	in := &sdk.PutItemInput{TableName: &d.table, Item: i, ReturnValuesOnConditionCheckFailure: allOld}
	in.ConditionExpression, in.ExpressionAttributeValues = text(condition), placeholders(values)
	_, err := d.db.PutItem(d.Context, in)
	return err
}

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

// text is a pointer to a text, or nil if it is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// placeholders are values in pairs of placeholder and value, or nil.
func placeholders(pairs []any) dynamodb.Item {
	if len(pairs) == 0 {
		return nil
	}
	i := item("", "", pairs...)
	delete(i, "orderId")
	delete(i, "sk")
	return i
}

// update updates item a of order o. A name with a # stands for the name after it.
func (d dynamoRun) update(update, condition string, values ...any) (dynamodb.Item, error) {
	in := &sdk.UpdateItemInput{
		TableName: &d.table, Key: item("o", "a"), UpdateExpression: &update, ConditionExpression: text(condition),
		ExpressionAttributeValues: placeholders(values), ExpressionAttributeNames: named(update + " " + condition),
		ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: allOld,
	}
	out, err := d.db.UpdateItem(d.Context, in)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// named are the names of an expression's placeholders, or nil.
func named(expression string) (names map[string]string) {
	for _, word := range strings.FieldsFunc(expression, func(r rune) bool { return strings.ContainsRune(" .,()", r) }) {
		if name, is := strings.CutPrefix(word, "#"); is {
			if names == nil {
				names = map[string]string{}
			}
			names[word] = name
		}
	}
	return names
}

// have puts items, which the rule is not about.
func (d dynamoRun) have(items ...dynamodb.Item) {
	for _, i := range items {
		d.Must(d.put(i, ""))
	}
}

// get reads item a of order o, or another one, in one line; "" if there is none.
func (d dynamoRun) get(sk ...string) string {
	out, err := d.db.GetItem(d.Context, &sdk.GetItemInput{
		TableName: &d.table, Key: item("o", append(sk, "a")[0]), ConsistentRead: aws.Bool(true),
	})
	d.Must(err)
	return line(out.Item)
}

// absent is a put of a transaction, of an item that must not exist.
func (d dynamoRun) absent(i dynamodb.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &d.table, Item: i, ConditionExpression: aws.String(dynamodb.Absent), ReturnValuesOnConditionCheckFailure: allOld,
	}}
}

// plus is an update of a transaction, which adds one to n of an item.
func (d dynamoRun) plus(sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &d.table, Key: item("o", sk), UpdateExpression: aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ExpressionAttributeValues: placeholders([]any{":zero", 0, ":one", 1}),
	}}
}

// transact sends a transaction under a token; the SDK makes one if it is empty.
func (d dynamoRun) transact(token string, items ...types.TransactWriteItem) error {
	_, err := d.db.TransactWriteItems(d.Context, &sdk.TransactWriteItemsInput{
		TransactItems: items, ClientRequestToken: text(token),
	})
	return err
}

// token is the client request token of this check: at most 36 characters.
func (d dynamoRun) token() string { return d.table[:min(36, len(d.table))] }

// query reads a page of order o, strongly consistent. It returns the sort keys.
func (d dynamoRun) query(limit int32, after dynamodb.Item) (sks []string, next dynamodb.Item) {
	in := &sdk.QueryInput{
		TableName: &d.table, KeyConditionExpression: aws.String("orderId = :o"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: placeholders([]any{":o", "o"}), ExclusiveStartKey: after,
	}
	if limit > 0 {
		in.Limit = &limit
	}
	out, err := d.db.Query(d.Context, in)
	d.Must(err)
	return sortKeys(out.Items), out.LastEvaluatedKey
}

func sortKeys(items []dynamodb.Item) (sks []string) {
	for _, i := range items {
		sks = append(sks, dynamodb.TextOf(i, "sk"))
	}
	return sks
}

// waiting queries shard 7 of the index of waiting orders until they are these sort keys.
// An index is eventually consistent.
func (d dynamoRun) waiting(what string, until int, want ...string) (items []dynamodb.Item) {
	d.Until(func() bool {
		out, err := d.db.Query(d.Context, &sdk.QueryInput{
			TableName: &d.table, IndexName: aws.String("open"), KeyConditionExpression: aws.String("openShard = :s AND dueAt <= :at"),
			ExpressionAttributeValues: placeholders([]any{":s", 7, ":at", until}),
		})
		d.Must(err)
		items = out.Items
		return d.double() || slices.Equal(sortKeys(items), want)
	})
	d.Want(what, sortKeys(items), want)
	return items
}

// Sources.
const (
	dynamoAPI   = "docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_"
	dynamoGuide = "docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	transactAPI = dynamoAPI + "TransactWriteItems.html"
	comparators = dynamoGuide + "Expressions.OperatorsAndFunctions.html"
	updates     = dynamoGuide + "Expressions.UpdateExpressions.html"
	queryPages  = dynamoGuide + "Query.Pagination.html"
)

func dynamoRules() []Rule {
	return slices.Concat(conditionRules(), updateRules(), transactionRules(), readRules(), indexRules())
}

func conditionRules() []Rule {
	return []Rule{
		dynamoRule("condition-unmet", "a write whose condition is not met is a ConditionalCheckFailedException, and changes nothing",
			dynamoAPI+"PutItem.html, ConditionalCheckFailedException", func(d dynamoRun) {
				d.have(item("o", "a", "n", 1))
				d.Want("put", d.did(d.put(item("o", "a", "n", 2), "attribute_not_exists(orderId)")), unmet)
				_, err := d.update("REMOVE n", "attribute_not_exists(n)")
				d.Want("update", d.did(err), unmet)
				d.Want("item", d.get(), "n=1 orderId=o sk=a")
			}),
		dynamoRule("condition-item", "with ALL_OLD the exception has the item that did not meet the condition, or none if there is none",
			dynamoAPI+"PutItem.html, ReturnValuesOnConditionCheckFailure", func(d dynamoRun) {
				_, err := d.update("SET n = :n", "n = :n", ":n", 2)
				refusing, refused := dynamodb.Refused(err)
				d.Want("no item", fmt.Sprint(refused, " ", line(refusing)), "true ")
				d.have(item("o", "a", "n", 1))
				_, err = d.update("SET n = :n", "n = :n", ":n", 2)
				refusing, _ = dynamodb.Refused(err)
				d.Want("update", line(refusing), "n=1 orderId=o sk=a")
				refusing, _ = dynamodb.Refused(d.put(item("o", "a"), "n = :n", ":n", 2))
				d.Want("put", line(refusing), "n=1 orderId=o sk=a")
			}),
		dynamoRule("condition-absent", "attribute_not_exists of the partition key is met if no item has the whole key",
			dynamoGuide+"Expressions.ConditionExpressions.html, Preventing overwrites", func(d dynamoRun) {
				for sk, want := range map[string]string{"a": ok, "b": ok} {
					d.Want(sk, d.did(d.put(item("o", sk), dynamodb.Absent)), want)
					d.Want(sk+", again", d.did(d.put(item("o", sk), dynamodb.Absent)), unmet)
				}
			}),
		dynamoRule("condition-missing", "a missing attribute is not =, < or >= to anything, so NOT of such a comparison is met",
			comparators+"; a comparison of attributes that are not there is not documented in words", func(d dynamoRun) {
				d.have(item("o", "a", "n", 1))
				for condition, want := range map[string]string{
					"nothing = :v": unmet, "nothing < :v": unmet, "nothing >= :v": unmet, "NOT nothing < :v": ok,
					"attribute_not_exists(nothing) OR nothing = :v": ok,
				} {
					d.Want(condition, d.did(d.put(item("o", "a", "n", 1), condition, ":v", 0)), want)
				}
			}),
		dynamoRule("condition-number", "numbers compare as numbers, and no number compares to a text",
			dynamoAPI+`Condition.html: "of a different type than the one provided in the request, the value does not match"`, func(d dynamoRun) {
				d.have(item("o", "a", "n", 10, "word", "10"))
				for condition, want := range map[string]string{
					"n >= :v": ok, "n = :v": unmet, "word >= :v": unmet, "n > :v AND n <> :v": ok,
				} {
					d.Want(condition, d.did(d.put(item("o", "a", "n", 10, "word", "10"), condition, ":v", 9)), want)
				}
				d.Want("a number and a text", d.did(d.put(item("o", "a"), "word = :v", ":v", 10)), unmet)
			}),
	}
}

func updateRules() []Rule {
	return []Rule{
		dynamoRule("update-creates", "an update makes an item that is missing, and ALL_NEW returns it as it is then",
			dynamoAPI+`UpdateItem.html: "adds a new item to the table if it does not already exist"`, func(d dynamoRun) {
				made, err := d.update("SET n = :n", "", ":n", 1)
				d.Want("made", d.did(err)+" "+line(made), "ok n=1 orderId=o sk=a")
				changed, err := d.update("SET m = :n REMOVE n", "", ":n", 2)
				d.Want("changed", d.did(err)+" "+line(changed), "ok m=2 orderId=o sk=a")
			}),
		dynamoRule("update-number", "SET adds and subtracts, from what if_not_exists has in place of a missing attribute, and else is refused",
			updates+", Incrementing and decrementing numeric attributes, Preventing overwrites of an existing attribute", func(d dynamoRun) {
				_, err := d.update("SET n = n - :n", "", ":n", 1)
				d.Want("of nothing", d.did(err), validation)
				_, err = d.update("SET n = if_not_exists(n, :zero) + :n, m = if_not_exists(m, :zero)", "", ":n", 5, ":zero", 0)
				d.Must(err)
				got, err := d.update("SET n = if_not_exists(n, :zero) - :n, m = m + :n", "", ":n", 2, ":zero", 0)
				d.Must(err)
				d.Want("item", line(got), "m=2 n=3 orderId=o sk=a")
			}),
		dynamoRule("update-path", "a path changes one member of a map, and is refused if there is no map",
			updates+", Adding nested map attributes; ValidationException: the document path is invalid for update", func(d dynamoRun) {
				d.have(item("o", "a", "refund r", dynamodb.Item{"owner": attribute("x"), "n": attribute(1)}))
				in := &sdk.UpdateItemInput{
					TableName: &d.table, Key: item("o", "a"), ConditionExpression: aws.String("#r.#owner = :x"),
					UpdateExpression:          aws.String("SET #r.#owner = :y"),
					ExpressionAttributeNames:  map[string]string{"#r": "refund r", "#owner": "owner"},
					ExpressionAttributeValues: placeholders([]any{":x", "x", ":y", "y"}),
				}
				_, err := d.db.UpdateItem(d.Context, in)
				d.Want("a member", d.did(err)+" "+d.get(), "ok orderId=o refund r={n=1 owner=y} sk=a")
				_, err = d.update("SET nothing.n = :n", "", ":n", 1)
				d.Want("without the map", d.did(err), validation)
			}),
		dynamoRule("names-reserved", "a reserved word in an expression is refused, and a placeholder for it is not",
			dynamoGuide+"ReservedWords.html: STATUS, OWNER", func(d dynamoRun) {
				for _, name := range []string{"status", "owner"} {
					_, err := d.update("SET "+name+" = :v", "", ":v", "x")
					_, err2 := d.update("SET #"+name+" = :v", "", ":v", "x")
					d.Want(name, d.did(err)+", "+d.did(err2), "ValidationException, ok")
				}
			}),
		dynamoRule("names-unused", "a placeholder that no expression uses is refused, and so is an empty map of them",
			dynamoGuide+"Expressions.ExpressionAttributeNames.html; the wording is the service's: value unused in expressions", func(d dynamoRun) {
				_, err := d.update("REMOVE n", "", ":n", 1)
				d.Want("unused", d.did(err), validation)
				_, err = d.db.UpdateItem(d.Context, &sdk.UpdateItemInput{
					TableName: &d.table, Key: item("o", "a"), UpdateExpression: aws.String("REMOVE n"), ExpressionAttributeNames: map[string]string{},
				})
				d.Want("empty", d.did(err), validation)
			}),
		dynamoRule("item-size", "an item has at most 400 KB, names included",
			dynamoGuide+"Constraints.html: 400 KB", func(d dynamoRun) {
				const rest = len("orderId") + len("o") + len("sk") + len("a") + len("text")
				full := 400<<10 - rest
				d.Want("400 KB", d.did(d.put(item("o", "a", "text", strings.Repeat("x", full)), "")), ok)
				d.Want("a byte more", d.did(d.put(item("o", "a", "text", strings.Repeat("x", full+1)), "")), validation)
			}),
	}
}

func transactionRules() []Rule {
	const exception = dynamoAPI + "TransactWriteItems.html, TransactionCanceledException"
	return []Rule{
		dynamoRule("transaction-all", "a transaction writes all of its items or none",
			transactAPI+`: "either all of them succeed, or all of them fail"`, func(d dynamoRun) {
				d.have(item("o", "b", "n", 1))
				d.Want("a, b", d.did(d.transact("", d.absent(item("o", "a")), d.absent(item("o", "b")))), canceled+" None ConditionalCheckFailed")
				d.Want("a is not written", d.get(), "")
				d.Want("a, c", d.did(d.transact("", d.absent(item("o", "a")), d.absent(item("o", "c")))), ok)
				d.Want("written", d.get()+", "+d.get("c"), "orderId=o sk=a, orderId=o sk=c")
			}),
		dynamoRule("transaction-order", "the reasons of a canceled transaction are in the order of its items, None where an item is not one",
			exception+`: "ordered in the list of the items"`, func(d dynamoRun) {
				d.have(item("o", "a"), item("o", "d"))
				d.Want("reasons", d.did(d.transact("", d.absent(item("o", "a")), d.absent(item("o", "b")), d.absent(item("o", "c")), d.absent(item("o", "d")))),
					canceled+" ConditionalCheckFailed None None ConditionalCheckFailed")
			}),
		dynamoRule("transaction-item", "with ALL_OLD a reason has the item that did not meet its condition",
			dynamoAPI+"Update.html, ReturnValuesOnConditionCheckFailure", func(d dynamoRun) {
				d.have(item("o", "a", "n", 1))
				err := d.transact("", d.absent(item("o", "a")), d.absent(item("o", "b")))
				refusing, _ := dynamodb.Refused(err)
				d.Want("item", d.did(err)+" "+line(refusing), canceled+" ConditionalCheckFailed None n=1 orderId=o sk=a")
			}),
		dynamoRule("transaction-100", "a transaction has at most 100 items",
			transactAPI+`: "up to 100 action requests"`, func(d dynamoRun) {
				for n, want := range map[int]string{100: ok, 101: validation} {
					items := make([]types.TransactWriteItem, n)
					for i := range items {
						items[i] = d.plus(fmt.Sprintf("%d-%d", n, i))
					}
					d.Want(strconv.Itoa(n), d.did(d.transact("", items...)), want)
				}
			}),
		dynamoRule("transaction-twice", "two operations on one item are refused",
			transactAPI+`: "no two actions can target the same item"`, func(d dynamoRun) {
				d.Want("twice", d.did(d.transact("", d.plus("a"), d.plus("a"))), validation)
				d.Want("item", d.get(), "")
			}),
		dynamoRule("token-again", "the same transaction again under its client request token succeeds, and changes nothing",
			transactAPI+`, ClientRequestToken: "multiple identical calls have the same effect as one single call", for 10 minutes`, func(d dynamoRun) {
				for range 2 {
					d.Want("sent", d.did(d.transact(d.token(), d.plus("a"))), ok)
				}
				d.Want("item", d.get(), "n=1 orderId=o sk=a")
			}),
		dynamoRule("token-other", "another transaction under a client request token is an IdempotentParameterMismatchException",
			transactAPI+`, ClientRequestToken: "a change in other parameters within the 10-minute idempotency window"`, func(d dynamoRun) {
				d.Want("first", d.did(d.transact(d.token(), d.plus("a"))), ok)
				d.Want("other", d.did(d.transact(d.token(), d.plus("b"))), "IdempotentParameterMismatchException")
				d.Want("item", d.get("b"), "")
			}),
	}
}

func readRules() []Rule {
	return []Rule{
		dynamoRule("read-consistent", "a strongly consistent read sees every write that succeeded before it",
			dynamoGuide+"HowItWorks.ReadConsistency.html", func(d dynamoRun) {
				for n := range 10 {
					d.have(item("o", "a", "n", n))
					d.Want("read", d.get(), fmt.Sprintf("n=%d orderId=o sk=a", n))
				}
			}),
		dynamoRule("query-order", "a query returns the items of a partition in the order of the bytes of their sort keys",
			dynamoGuide+"Query.html: strings in order of UTF-8 bytes", func(d dynamoRun) {
				d.have(item("o", "b"), item("o", "é"), item("o", "a#10"), item("p", "a"), item("o", "a#9"), item("o", "B"))
				sks, _ := d.query(0, nil)
				d.Want("sort keys", sks, []string{"B", "a#10", "a#9", "b", "é"})
			}),
		dynamoRule("query-pages", "a page ends after Limit items, and LastEvaluatedKey begins the next one",
			queryPages, func(d dynamoRun) {
				d.have(item("o", "a"), item("o", "b"), item("o", "c"))
				first, next := d.query(2, nil)
				d.Want("first", fmt.Sprint(first, line(next)), "[a b]orderId=o sk=b")
				if len(next) == 0 {
					return
				}
				second, end := d.query(2, next)
				d.Want("second", fmt.Sprint(second, line(end)), "[c]")
			}),
		dynamoRule("query-megabyte", "a page without a Limit ends after 1 MB",
			queryPages+": 1 MB", func(d dynamoRun) {
				for _, sk := range []string{"a", "b", "c", "d"} {
					d.have(item("o", sk, "text", strings.Repeat("x", 350_000)))
				}
				first, next := d.query(0, nil)
				d.Want("first", fmt.Sprint(len(first) < 4, len(next) > 0), "true true")
			}),
		dynamoRule("scan-filter", "a filter applies after Limit, so a page may be empty and not the last one",
			dynamoGuide+"Scan.html: a filter expression is applied after a Scan finishes, but before the results are returned", scanFilter),
		dynamoRule("ttl", "an item that has expired is read until DynamoDB deletes it, which takes days",
			dynamoGuide+"ttl-expired-items.html", func(d dynamoRun) {
				_, err := d.db.UpdateTimeToLive(d.Context, &sdk.UpdateTimeToLiveInput{TableName: &d.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
					AttributeName: aws.String(dynamodbtest.Expiry), Enabled: aws.Bool(true),
				}})
				d.Must(err)
				expired := int(d.Now().Add(-time.Hour).Unix())
				d.have(item("o", "a", dynamodbtest.Expiry, expired))
				d.Want("item", d.get(), fmt.Sprintf("expiresAt=%d orderId=o sk=a", expired))
			}),
	}
}

// scanFilter scans with a filter that only the last of four items passes, item by item.
func scanFilter(d dynamoRun) {
	all := []dynamodb.Item{item("o", "a", "n", 1), item("o", "b", "n", 1), item("o", "c", "n", 1), item("o", "d", "n", 2)}
	d.have(all...)
	empty, found, after := 0, []string(nil), dynamodb.Item(nil)
	for range 2 * len(all) {
		out, err := d.db.Scan(d.Context, &sdk.ScanInput{
			TableName: &d.table, Limit: aws.Int32(1), ExclusiveStartKey: after, ConsistentRead: aws.Bool(true),
			FilterExpression: aws.String("n = :n"), ExpressionAttributeValues: placeholders([]any{":n", 2}),
		})
		d.Must(err)
		found = append(found, sortKeys(out.Items)...)
		if after = out.LastEvaluatedKey; len(after) == 0 {
			break
		}
		if len(out.Items) == 0 {
			empty++
		}
	}
	d.Want("empty pages before the last", empty, 3)
	d.Want("found", found, []string{"d"})
}

func indexRules() []Rule {
	const page = dynamoGuide + "GSI.html"
	return []Rule{
		dynamoRule("index-sparse", "an index has only the items that have its key, until they lose it",
			dynamoGuide+"bp-indexes-general-sparse-indexes.html", func(d dynamoRun) {
				d.have(item("o", "none"), item("o", "half", "openShard", 7), item("o", "a", "openShard", 7, "dueAt", 1), item("o", "other", "openShard", 8, "dueAt", 1))
				d.waiting("with a key", 9, "a")
				_, err := d.update("REMOVE openShard, dueAt", "")
				d.Must(err)
				d.waiting("without it", 9)
			}),
		dynamoRule("index-keys", "an index of projection KEYS_ONLY has the keys of the table and its own, and nothing else",
			page+", Attribute projections", func(d dynamoRun) {
				d.have(item("o", "a", "openShard", 7, "dueAt", 1, "n", 1))
				var seen []string
				for _, i := range d.waiting("found", 9, "a") {
					seen = append(seen, line(i))
				}
				d.Want("attributes", seen, []string{"dueAt=1 openShard=7 orderId=o sk=a"})
			}),
		dynamoRule("index-order", "a query of an index is in the order of its sort key, as numbers, up to a bound with it",
			page+"; "+dynamoAPI+"Query.html, KeyConditionExpression", func(d dynamoRun) {
				for sk, at := range map[string]int{"a": 100, "b": 9, "c": 10, "d": 11} {
					d.have(item("o", sk, "openShard", 7, "dueAt", at))
				}
				d.waiting("due", 11, "b", "c", "d")
			}),
	}
}

// doubleDynamo is the engine behind the proxy of the tests.
func doubleDynamo(ctx context.Context) (World, error) {
	location, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return World{}, err
	}
	engine, err := dynamodbtest.Start(ctx, location)
	if err != nil {
		return World{}, err
	}
	proxy, err := dynamodbtest.NewProxy(ctx, engine.Endpoint)
	if err != nil {
		return World{}, errors.Join(err, engine.Close())
	}
	cfg := dynamodbtest.Config(engine.Endpoint, os.Getenv)
	cfg.BaseEndpoint = &proxy.URL
	return World{Config: cfg, Double: proxy, close: func() error { return errors.Join(proxy.Close(), engine.Close()) }}, nil
}
