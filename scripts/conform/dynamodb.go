package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
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

// dynamoRun calls DynamoDB. Its table has the definition of the orders table.
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
		r.Defer(func(ctx context.Context) error {
			err := dynamodbtest.DropTable(ctx, d.db, d.table)
			if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
				return nil
			}
			return err
		})
		r.Must(dynamodbtest.Create(context.WithoutCancel(r.Context), d.db, definition)) // a half-made one cannot be removed
		check(d)
	}}
}

// did is "ok" or the code of an error, with those of the reasons of a transaction. It
// ends the check on an error that says nothing about a rule.
func (r *Run) did(err error) string {
	switch kindOf(err) {
	case none:
		return ok
	case lacks, throttled, denied, lost:
		r.Must(err)
	case refused:
	}
	code, status := codeOf(err)
	if canceled, is := errors.AsType[*types.TransactionCanceledException](err); is {
		for _, reason := range canceled.CancellationReasons {
			code += " " + aws.ToString(reason.Code)
		}
	}
	return cmp.Or(code, strconv.Itoa(status))
}

const (
	ok         = "ok"
	unmet      = "ConditionalCheckFailedException"
	validation = "ValidationException"
	canceled   = "TransactionCanceledException"
)

// values are attributes in pairs of name and text, number or map; nil if there are none.
func values(pairs ...any) (i dynamodb.Item) {
	for pair := range slices.Chunk(pairs, 2) {
		if i == nil {
			i = dynamodb.Item{}
		}
		switch v, name := pair[1], pair[0].(string); v := v.(type) {
		case string:
			i[name] = dynamodb.Text(v)
		case int:
			i[name] = dynamodb.Number(v)
		case dynamodb.Item:
			i[name] = &types.AttributeValueMemberM{Value: v}
		}
	}
	return i
}

// item is an item of order o.
func item(sk string, attributes ...any) dynamodb.Item {
	return values(append([]any{"orderId", "o", "sk", sk}, attributes...)...)
}

// line shows an item without its partition key, as "n=1 sk=a", in the order of names.
func line(i dynamodb.Item) string {
	words := make([]string, 0, len(i))
	for name, value := range i {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			words = append(words, name+"="+v.Value)
		case *types.AttributeValueMemberN:
			words = append(words, name+"="+v.Value)
		case *types.AttributeValueMemberM:
			words = append(words, name+"={"+line(v.Value)+"}")
		}
	}
	slices.Sort(words)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "orderId=o" }), " ")
}

// refusing is the item that did not meet a condition.
func refusing(err error) string {
	i, _ := dynamodb.Refused(err)
	return line(i)
}

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

// put puts an item on a condition, which may be empty, with values of placeholders.
func (d dynamoRun) put(i dynamodb.Item, condition string, pairs ...any) error {
	in := &sdk.PutItemInput{TableName: &d.table, Item: i, ExpressionAttributeValues: values(pairs...)}
	if in.ReturnValuesOnConditionCheckFailure = allOld; condition != "" {
		in.ConditionExpression = &condition
	}
	_, err := d.db.PutItem(d.Context, in)
	return err
}

// update updates the item with sort key a. A placeholder #x stands for the name x.
func (d dynamoRun) update(update, condition string, pairs ...any) (is string, err error) {
	in := &sdk.UpdateItemInput{
		TableName: &d.table, Key: item("a"), UpdateExpression: &update, ExpressionAttributeValues: values(pairs...),
		ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: allOld,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	for _, name := range regexp.MustCompile(`#\w+`).FindAllString(update+condition, -1) {
		if in.ExpressionAttributeNames == nil {
			in.ExpressionAttributeNames = map[string]string{}
		}
		in.ExpressionAttributeNames[name] = name[1:]
	}
	out, err := d.db.UpdateItem(d.Context, in)
	if err == nil {
		is = line(out.Attributes)
	}
	return is, err
}

// have puts items, which the rule is not about.
func (d dynamoRun) have(items ...dynamodb.Item) {
	for _, i := range items {
		d.Must(d.put(i, ""))
	}
}

// get reads an item, strongly consistent; "" if there is none.
func (d dynamoRun) get(sk string) string {
	out, err := d.db.GetItem(d.Context, &sdk.GetItemInput{TableName: &d.table, Key: item(sk), ConsistentRead: aws.Bool(true)})
	d.Must(err)
	return line(out.Item)
}

// absent is a put of a transaction, of an item that must not exist.
func (d dynamoRun) absent(sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &d.table, Item: item(sk), ConditionExpression: aws.String(dynamodb.Absent), ReturnValuesOnConditionCheckFailure: allOld,
	}}
}

// plus is an update of a transaction, which adds one to n.
func (d dynamoRun) plus(sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &d.table, Key: item(sk), UpdateExpression: aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ExpressionAttributeValues: values(":zero", 0, ":one", 1),
	}}
}

// transact sends a transaction under a token, or under one that the SDK makes.
func (d dynamoRun) transact(token *string, items ...types.TransactWriteItem) error {
	_, err := d.db.TransactWriteItems(d.Context, &sdk.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: token})
	return err
}

// query reads a page of order o, strongly consistent.
func (d dynamoRun) query(limit int32, after dynamodb.Item) (sks []string, next dynamodb.Item) {
	out, err := d.db.Query(d.Context, &sdk.QueryInput{
		TableName: &d.table, KeyConditionExpression: aws.String("orderId = :o"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: values(":o", "o"), ExclusiveStartKey: after, Limit: &limit,
	})
	d.Must(err)
	for _, i := range out.Items {
		sks = append(sks, dynamodb.TextOf(i, "sk"))
	}
	return sks, out.LastEvaluatedKey
}

// waiting queries shard 7 of the index of waiting orders, which is eventually consistent.
func (d dynamoRun) waiting(what string, want ...string) {
	var got []string
	d.Until(func() bool {
		got = nil
		out, err := d.db.Query(d.Context, &sdk.QueryInput{
			TableName: &d.table, IndexName: aws.String("open"), KeyConditionExpression: aws.String("openShard = :s AND dueAt <= :at"),
			ExpressionAttributeValues: values(":s", 7, ":at", 11),
		})
		d.Must(err)
		for _, i := range out.Items {
			got = append(got, line(i))
		}
		return d.double() || slices.Equal(got, want)
	})
	d.Want(what, got, want)
}

const (
	dynamoAPI   = "docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_"
	dynamoGuide = "docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	transactAPI = dynamoAPI + "TransactWriteItems.html"
	comparators = dynamoGuide + "Expressions.OperatorsAndFunctions.html"
	updates     = dynamoGuide + "Expressions.UpdateExpressions.html"
	queryPages  = dynamoGuide + "Query.Pagination.html"
	indexes     = dynamoGuide + "GSI.html"
)

func dynamoRules() []Rule {
	return slices.Concat(conditionRules(), updateRules(), transactionRules(), readRules(), indexRules())
}

func conditionRules() []Rule {
	compares := func(id, says, source string, outcomes map[string]string) Rule {
		return dynamoRule(id, says, source, func(d dynamoRun) {
			is := item("a", "n", 10, "word", "10")
			d.have(is)
			for condition, want := range outcomes {
				d.Want(condition, d.did(d.put(is, condition, ":v", 9)), want)
			}
		})
	}
	return []Rule{
		dynamoRule("condition-unmet", "a write whose condition is not met is a ConditionalCheckFailedException, and changes nothing",
			dynamoAPI+"PutItem.html, ConditionalCheckFailedException", func(d dynamoRun) {
				d.have(item("a", "n", 1))
				d.Want("put", d.did(d.put(item("a", "n", 2), "attribute_not_exists(orderId)")), unmet)
				_, err := d.update("REMOVE n", "attribute_not_exists(n)")
				d.Want("update", d.did(err)+" "+d.get("a"), unmet+" n=1 sk=a")
			}),
		dynamoRule("condition-item", "with ALL_OLD the exception has the item that did not meet the condition, or none if there is none",
			dynamoAPI+"PutItem.html, ReturnValuesOnConditionCheckFailure", func(d dynamoRun) {
				_, err := d.update("SET n = :n", "n = :n", ":n", 2)
				d.Want("no item", d.did(err)+refusing(err), unmet)
				d.have(item("a", "n", 1))
				_, err = d.update("SET n = :n", "n = :n", ":n", 2)
				d.Want("update", refusing(err), "n=1 sk=a")
				d.Want("put", refusing(d.put(item("a"), "n = :n", ":n", 2)), "n=1 sk=a")
			}),
		dynamoRule("condition-absent", "attribute_not_exists of the partition key is met if no item has the whole key",
			dynamoGuide+"Expressions.ConditionExpressions.html, Preventing overwrites", func(d dynamoRun) {
				for _, sk := range []string{"a", "b"} {
					d.Want(sk, d.did(d.put(item(sk), dynamodb.Absent)), ok)
					d.Want(sk+", again", d.did(d.put(item(sk), dynamodb.Absent)), unmet)
				}
			}),
		compares("condition-missing", "a missing attribute is not =, < or >= to anything, and NOT of such a comparison is met",
			comparators+"; that such a comparison is false is not documented in words", map[string]string{
				"nothing = :v": unmet, "nothing < :v": unmet, "nothing >= :v": unmet, "NOT nothing < :v": ok,
				"attribute_not_exists(nothing) OR nothing = :v": ok,
			}),
		compares("condition-number", "numbers compare as numbers, and no number compares to a text",
			dynamoAPI+`Condition.html: "of a different type than the one provided in the request, the value does not match"`, map[string]string{
				"n >= :v": ok, "n = :v": unmet, "n > :v AND n <> :v": ok, "word = :v": unmet, "word >= :v": unmet,
			}),
	}
}

func updateRules() []Rule {
	return []Rule{
		dynamoRule("update-creates", "an update makes an item that is missing, and ALL_NEW returns it as it is then",
			dynamoAPI+`UpdateItem.html: "adds a new item to the table if it does not already exist"`, func(d dynamoRun) {
				made, err := d.update("SET n = :n", "", ":n", 1)
				d.Want("made", d.did(err)+" "+made, "ok n=1 sk=a")
				changed, err := d.update("SET m = :n REMOVE n", "", ":n", 2)
				d.Want("changed", d.did(err)+" "+changed, "ok m=2 sk=a")
			}),
		dynamoRule("update-number", "SET adds and subtracts, and a missing attribute is refused unless if_not_exists has another number",
			updates+", Incrementing and decrementing numeric attributes; if_not_exists", func(d dynamoRun) {
				_, err := d.update("SET n = n - :n", "", ":n", 1)
				d.Want("of nothing", d.did(err), validation)
				_, err = d.update("SET n = if_not_exists(n, :zero) + :n, m = if_not_exists(m, :zero)", "", ":n", 5, ":zero", 0)
				d.Must(err)
				got, err := d.update("SET n = if_not_exists(n, :zero) - :n, m = m + :n", "", ":n", 2, ":zero", 0)
				d.Want("item", d.did(err)+" "+got, "ok m=2 n=3 sk=a")
			}),
		dynamoRule("update-path", "a path changes one member of a map, and is refused if there is no map",
			updates+", Adding nested map attributes; ValidationException: the document path is invalid for update", func(d dynamoRun) {
				d.have(item("a", "refund", values("owner", "x", "n", 1)))
				got, err := d.update("SET refund.#owner = :y", "refund.#owner = :x", ":x", "x", ":y", "y")
				d.Want("a member", d.did(err)+" "+got, "ok refund={n=1 owner=y} sk=a")
				_, err = d.update("SET nothing.n = :n", "", ":n", 1)
				d.Want("without the map", d.did(err), validation)
			}),
		dynamoRule("names-reserved", "a reserved word in an expression is refused, and a placeholder for it is not",
			dynamoGuide+"ReservedWords.html: STATUS, OWNER", func(d dynamoRun) {
				for _, name := range []string{"status", "owner"} {
					_, bare := d.update("SET "+name+" = :v", "", ":v", "x")
					_, placeholder := d.update("SET #"+name+" = :v", "", ":v", "x")
					d.Want(name, d.did(bare)+", "+d.did(placeholder), validation+", ok")
				}
			}),
		dynamoRule("item-size", "an item has at most 400 KB, names included",
			dynamoGuide+"Constraints.html, Item size", func(d dynamoRun) {
				full := 400<<10 - len("orderId"+"o"+"sk"+"a"+"text")
				d.Want("400 KB", d.did(d.put(item("a", "text", strings.Repeat("x", full)), "")), ok)
				d.Want("a byte more", d.did(d.put(item("a", "text", strings.Repeat("x", full+1)), "")), validation)
			}),
	}
}

func transactionRules() []Rule {
	return []Rule{
		dynamoRule("transaction-all", "a transaction writes all of its items or none",
			transactAPI+`: "either all of them succeed, or all of them fail"`, func(d dynamoRun) {
				d.have(item("b"))
				d.Want("a, b", d.did(d.transact(nil, d.absent("a"), d.absent("b"))), canceled+" None ConditionalCheckFailed")
				d.Want("a is not written", d.get("a"), "")
				d.Want("a, c", d.did(d.transact(nil, d.absent("a"), d.absent("c"))), "ok")
				d.Want("both are written", d.get("a")+", "+d.get("c"), "sk=a, sk=c")
			}),
		dynamoRule("transaction-reasons", "a canceled transaction has a reason for each item, in order, with what did not meet its condition",
			transactAPI+`: "ordered in the order of requested items"; `+dynamoAPI+"Put.html, ALL_OLD", func(d dynamoRun) {
				d.have(item("a", "n", 1), item("c"))
				err := d.transact(nil, d.absent("a"), d.absent("b"), d.absent("c"))
				d.Want("codes", d.did(err), canceled+" ConditionalCheckFailed None ConditionalCheckFailed")
				d.Want("item of the first", refusing(err), "n=1 sk=a")
			}),
		dynamoRule("transaction-100", "a transaction has at most 100 items",
			transactAPI+`: "up to 100 action requests"`, func(d dynamoRun) {
				items := make([]types.TransactWriteItem, 101)
				for i := range items {
					items[i] = d.plus(fmt.Sprintf("i%d", i))
				}
				d.Want("100, 101", d.did(d.transact(nil, items[:100]...))+", "+d.did(d.transact(nil, items...)), "ok, "+validation)
			}),
		dynamoRule("transaction-twice", "two operations on one item are refused",
			transactAPI+`: "no two actions can target the same item"`, func(d dynamoRun) {
				d.Want("twice", d.did(d.transact(nil, d.plus("a"), d.plus("a")))+d.get("a"), validation)
			}),
		dynamoRule("token", "a transaction again under its client request token succeeds and changes nothing, and another one is refused",
			transactAPI+`, ClientRequestToken: "the same effect as one single call", for 10 minutes`, func(d dynamoRun) {
				token := aws.String(fmt.Sprintf("%.36s", d.table))
				d.Want("first, again", d.did(d.transact(token, d.plus("a")))+", "+d.did(d.transact(token, d.plus("a"))), "ok, ok")
				d.Want("item", d.get("a"), "n=1 sk=a")
				d.Want("another", d.did(d.transact(token, d.plus("b")))+d.get("b"), "IdempotentParameterMismatchException")
			}),
	}
}

func readRules() []Rule {
	return []Rule{
		dynamoRule("read-consistent", "a strongly consistent read sees every write that succeeded before it",
			dynamoGuide+"HowItWorks.ReadConsistency.html", func(d dynamoRun) {
				for n := range 10 {
					d.have(item("a", "n", n))
					d.Want("read", d.get("a"), fmt.Sprintf("n=%d sk=a", n))
				}
			}),
		dynamoRule("query-order", "a query returns the items of a partition in the order of the bytes of their sort keys",
			dynamoAPI+"Query.html: in order of UTF-8 bytes", func(d dynamoRun) {
				d.have(item("b"), item("é"), item("a#10"), values("orderId", "p", "sk", "a"), item("a#9"), item("B"))
				sks, _ := d.query(9, nil)
				d.Want("sort keys", sks, []string{"B", "a#10", "a#9", "b", "é"})
			}),
		dynamoRule("query-pages", "a page ends after Limit items, and LastEvaluatedKey begins the next one",
			queryPages, func(d dynamoRun) {
				d.have(item("a"), item("b"), item("c"))
				first, next := d.query(2, nil)
				d.Want("first", fmt.Sprint(first, line(next)), "[a b]sk=b")
				second, end := d.query(2, next)
				d.Want("second", fmt.Sprint(second, line(end)), "[c]")
			}),
		dynamoRule("scan-filter", "a filter applies after Limit, so a page may be empty and not the last one",
			dynamoGuide+"Scan.html, Limiting the number of items: before the filter expression is evaluated", func(d dynamoRun) {
				d.have(item("a", "n", 1), item("b", "n", 1), item("c", "n", 1), item("d", "n", 1))
				out, err := d.db.Scan(d.Context, &sdk.ScanInput{
					TableName: &d.table, Limit: aws.Int32(3), ConsistentRead: aws.Bool(true),
					FilterExpression: aws.String("n = :n"), ExpressionAttributeValues: values(":n", 2),
				})
				d.Must(err)
				d.Want("page", fmt.Sprint(len(out.Items), len(out.LastEvaluatedKey) > 0), "0 true")
			}),
		dynamoRule("ttl", "an item that has expired is read until DynamoDB deletes it, which takes days",
			dynamoGuide+"ttl-expired-items.html", func(d dynamoRun) {
				expiry := types.TimeToLiveSpecification{AttributeName: aws.String(dynamodbtest.Expiry), Enabled: aws.Bool(true)}
				_, err := d.db.UpdateTimeToLive(d.Context, &sdk.UpdateTimeToLiveInput{TableName: &d.table, TimeToLiveSpecification: &expiry})
				d.Must(err)
				d.have(item("a", dynamodbtest.Expiry, int(d.Now().Add(-time.Hour).Unix())))
				d.Want("item", d.get("a") != "", true)
			}),
	}
}

func indexRules() []Rule {
	return []Rule{
		dynamoRule("index-sparse", "an index has only the items that have its key, until they lose it, and with KEYS_ONLY only their keys",
			indexes+", Attribute projections; "+dynamoGuide+"bp-indexes-general-sparse-indexes.html", func(d dynamoRun) {
				d.have(item("none"), item("half", "openShard", 7))
				d.have(item("a", "openShard", 7, "dueAt", 1, "n", 1), item("other", "openShard", 8, "dueAt", 1))
				d.waiting("with a key", "dueAt=1 openShard=7 sk=a")
				_, err := d.update("REMOVE openShard, dueAt", "")
				d.Must(err)
				d.waiting("without it")
			}),
		dynamoRule("index-order", "a query of an index is in the order of its sort key, as numbers, up to a bound with it",
			indexes+"; "+dynamoAPI+"Query.html, KeyConditionExpression", func(d dynamoRun) {
				for sk, at := range map[string]int{"a": 100, "b": 9, "c": 10, "d": 11} {
					d.have(item(sk, "openShard", 7, "dueAt", at))
				}
				d.waiting("due", "dueAt=9 openShard=7 sk=b", "dueAt=10 openShard=7 sk=c", "dueAt=11 openShard=7 sk=d")
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
