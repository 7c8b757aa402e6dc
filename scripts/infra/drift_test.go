// Package infra_test compares infra/terraform with the rest of the repository: the table
// and the queues of the tests and the local system, the variables and metrics of the
// functions, and the documentation. It parses the module and does not run Terraform. What
// Terraform plans is tested by infra/terraform/tests. The tests run in the folder infra.
package infra_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// table has the properties that the module's table shares with the one of the tests.
type table struct {
	Billing, Stream, Expiry string
	Keys                    []string
	Attributes              map[string]string
	Indexes                 map[string]index
}

type index struct {
	Projection string
	Keys       []string
}

func TestTheTablesEqualThoseOfTheTests(t *testing.T) {
	t.Parallel()
	orders := testTable(dynamodbtest.TableDefinition("orders"))
	orders.Expiry = aws.ToString(
		dynamodbtest.TimeToLiveDefinition("orders").TimeToLiveSpecification.AttributeName)
	for name, want := range map[string]table{
		"orders":   orders,
		"stock":    testTable(dynamodbtest.StockTableDefinition("stock")),
		"receipts": testTable(dynamodbtest.ReceiptsDefinition("receipts")),
	} {
		if diff := cmp.Diff(want, moduleTable(t, name)); diff != "" {
			t.Errorf("table %s differs (- dynamodbtest, + infra/terraform):\n%s", name, diff)
		}
	}
}

func testTable(definition *dynamodb.CreateTableInput) table {
	keys := func(schema []sdk.KeySchemaElement) (all []string) {
		for _, key := range schema {
			all = append(all, aws.ToString(key.AttributeName)+" "+string(key.KeyType))
		}
		return all
	}
	result := table{
		Billing: string(definition.BillingMode), Keys: keys(definition.KeySchema),
		Attributes: map[string]string{}, Indexes: map[string]index{},
	}
	if definition.StreamSpecification != nil {
		result.Stream = string(definition.StreamSpecification.StreamViewType)
	}
	for _, a := range definition.AttributeDefinitions {
		result.Attributes[aws.ToString(a.AttributeName)] = string(a.AttributeType)
	}
	for _, i := range definition.GlobalSecondaryIndexes {
		result.Indexes[aws.ToString(i.IndexName)] = index{string(i.Projection.ProjectionType), keys(i.KeySchema)}
	}
	return result
}

func moduleTable(t *testing.T, name string) table {
	t.Helper()
	resource := parse(t).one(t, "resource", "aws_dynamodb_table", name)
	result := table{
		Billing: resource.text(t, "billing_mode"), Keys: []string{resource.text(t, "hash_key") + " HASH"},
		Attributes: map[string]string{}, Indexes: map[string]index{},
	}
	if resource.Attributes["range_key"] != nil {
		result.Keys = append(result.Keys, resource.text(t, "range_key")+" RANGE")
	}
	if resource.Attributes["stream_view_type"] != nil {
		result.Stream = resource.text(t, "stream_view_type")
	}
	for _, ttl := range resource.blocks("ttl") {
		result.Expiry = ttl.text(t, "attribute_name")
	}
	for _, a := range resource.blocks("attribute") {
		result.Attributes[a.text(t, "name")] = a.text(t, "type")
	}
	for _, i := range resource.blocks("global_secondary_index") {
		var keys []string
		for _, key := range i.blocks("key_schema") {
			keys = append(keys, key.text(t, "attribute_name")+" "+key.text(t, "key_type"))
		}
		result.Indexes[i.text(t, "name")] = index{i.text(t, "projection_type"), keys}
	}
	return result
}

// queues has the properties that the module's queues share with those of the local
// system. The visibility timeout differs, because the local system recovers from a crash
// within seconds. maxReceiveCount comes from sqs.DefaultPolicy in both.
type queues struct {
	Retention, DeadLetterRetention time.Duration
	BatchSize                      int
}

func TestTheQueuesEqualThoseOfTheLocalSystem(t *testing.T) {
	t.Parallel()
	system := parseGo(t, "../scripts/local/system/system.go")
	local := queues{
		Retention:           system.assigned(t, "live.Retention"),
		DeadLetterRetention: system.assigned(t, "dead.Retention"),
		BatchSize:           system.set(t, "o.BatchSize"),
	}
	m := parse(t)
	orders := m.one(t, "resource", "aws_sqs_queue", "orders")
	dead := m.one(t, "resource", "aws_sqs_queue", "dead_letters")
	mapping := m.one(t, "resource", "aws_lambda_event_source_mapping", "orders")
	module := queues{
		Retention:           orders.seconds(t, "message_retention_seconds"),
		DeadLetterRetention: dead.seconds(t, "message_retention_seconds"),
		BatchSize:           mapping.number(t, "batch_size"),
	}
	if diff := cmp.Diff(local, module); diff != "" {
		t.Errorf("queues differ (- scripts/local, + infra/terraform):\n%s", diff)
	}
}

func TestTheOrderQueueMeetsTheAssumptionsOfTheFunction(t *testing.T) {
	t.Parallel()
	module := parse(t)
	orders := module.one(t, "resource", "aws_sqs_queue", "orders")
	function := module.one(t, "variable", "function_timeout").seconds(t, "default")
	if got, want := orders.seconds(t, "message_retention_seconds"), sqs.DefaultPolicy().Retention; got != want {
		t.Errorf("message_retention_seconds: got %v, want %v, because the function parks a day before", got, want)
	}
	if got, want := orders.seconds(t, "visibility_timeout_seconds"), 6*function; got < want {
		t.Errorf("visibility_timeout_seconds: got %v, want at least %v (6 x function_timeout)", got, want)
	}
	// A test in adapters/sqs counts how many receives the delays of the policy need.
	if got, want := maxReceives(t, orders), sqs.DefaultPolicy().MaxReceives; got != want {
		t.Errorf("maxReceiveCount: got %d, want %d, so that the function parks first, with a reason", got, want)
	}
	if got, want := orders.number(t, "max_message_size"), 2*sqs.MaxBody; got < want {
		t.Errorf("max_message_size: got %d, want at least %d: a redriven message has attributes", got, want)
	}
}

// A function that cannot start parks nothing. Each receive lasts one visibility timeout,
// and after maxReceiveCount of them SQS moves the message to the dead-letter queue.
func TestDocumentsStateHowLongTheQueueWaitsForAFunctionThatCannotStart(t *testing.T) {
	t.Parallel()
	orders := parse(t).one(t, "resource", "aws_sqs_queue", "orders")
	receives := maxReceives(t, orders)
	wait := time.Duration(receives) * orders.seconds(t, "visibility_timeout_seconds")
	for _, file := range []string{
		"terraform/queue.tf", "../docs/guides/operate.md", "../docs/reference/failures.md",
	} {
		text := oneLine(read(t, file))
		for _, want := range []string{
			fmt.Sprintf("%d,%03d", receives/1000, receives%1000), fmt.Sprintf("%.0f hours", wait.Hours()),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: does not contain %q", file, want)
			}
		}
	}
}

// The stream forgets a record after 24 hours. Lambda must give up before, because only
// then it reports what was not published.
func TestDocumentsStateHowLongAnEventIsRetried(t *testing.T) {
	t.Parallel()
	mapping := parse(t).one(t, "resource", "aws_lambda_event_source_mapping", "publish")
	age := mapping.seconds(t, "maximum_record_age_in_seconds")
	if age >= 24*time.Hour {
		t.Errorf("maximum_record_age_in_seconds: got %v, want less than 24h", age)
	}
	for _, file := range []string{"terraform/publish.tf", "terraform/alarms.tf", "../docs/guides/operate.md"} {
		if want := fmt.Sprintf("%.0f hours", age.Hours()); !strings.Contains(oneLine(read(t, file)), want) {
			t.Errorf("%s: does not contain %q", file, want)
		}
	}
}

// oneLine undoes the wrapping of a text and of comments.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n# ", "\n")), " ")
}

func maxReceives(t *testing.T, queue body) (count int) {
	t.Helper()
	fields(queue.attribute(t, "redrive_policy").Expr, func(name string, value hclsyntax.Expression) {
		if name == "maxReceiveCount" {
			literal, _ := value.Value(nil)
			count = integer(literal)
		}
	})
	return count
}

func TestTheModuleSetsTheVariablesOfTheFunctions(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`env:"([A-Z_]+)[^\x60]*?"(?:\s+envDefault:"(\w+)")?`)
	shared := read(t, "../functions/internal/setup/setup.go")
	// tests/webhook.tftest.hcl says why the module sets another value than the default.
	const another = "webhook STRIPE_TIMEOUT"
	given := map[string][]string{}
	for function, environment := range environments(t) {
		known := map[string]string{} // name and default
		config := read(t, "../functions/"+function+"/config.go") + shared
		for _, match := range variable.FindAllStringSubmatch(config, -1) {
			known[match[1]] = match[2]
		}
		fields(environment, func(name string, value hclsyntax.Expression) {
			given[function] = append(given[function], name)
			want, ok := known[name]
			if !ok {
				t.Errorf("%s: %s: not a variable of the function", function, name)
			}
			if function+" "+name == another {
				return
			}
			if got, problems := value.Value(nil); !problems.HasErrors() && got.AsString() != want {
				t.Errorf("%s: %s: got %q, want the function's default %q", function, name, got.AsString(), want)
			}
		})
	}
	for function, needed := range map[string][]string{
		"order": {
			"ORDERS_TABLE", "QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "SCOPE", "STRIPE_SECRET_ARN", "STOCK_TABLE",
		},
		"webhook": {"ORDERS_TABLE", "SCOPE", "STRIPE_SECRET_ARN", "WEBHOOK_SECRET_ARN", "STOCK_TABLE"},
		"reconcile": {
			"ORDERS_TABLE", "SCOPE", "STRIPE_SECRET_ARN", "STRIPE_TIMEOUT", "STRIPE_RATE", "STOCK_TABLE",
			"STOCK_HOLD",
		},
		"publish": {"EVENT_BUS", "SCOPE"},
		"intake":  {"ORDERS_TABLE", "QUEUE_URL", "SCOPE", "OWNER_CLAIM", "CUSTOMER_CLAIM"},
		"receipt": {
			"RECEIPTS_TABLE", "QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "SCOPE", "STRIPE_SECRET_ARN",
			"RECEIPT_FROM", "RECEIPT_CONFIGURATION_SET", "RECEIPTS",
		},
	} {
		for _, name := range needed {
			if !slices.Contains(given[function], name) {
				t.Errorf("%s: %s: not set", function, name)
			}
		}
	}
}

func TestTheModulePrintsTheVariablesOfTheOperatorsTool(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../scripts/orders/*.go")
	if err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile(`"export ([A-Z_]+)=`).FindAllStringSubmatch(read(t, "terraform/outputs.tf"), -1)
	var names []string
	for _, match := range printed {
		names = append(names, match[1])
	}
	for _, file := range files {
		for _, match := range regexp.MustCompile(`env:"([A-Z_]+),notEmpty`).FindAllStringSubmatch(read(t, file), -1) {
			if name := match[1]; name != "STRIPE_SECRET_KEY" && !slices.Contains(names, name) {
				t.Errorf("%s: needs %s, which the output operator_environment does not print", file, name)
			}
		}
	}
	if len(names) == 0 {
		t.Error("outputs.tf: no output prints variables")
	}
}

// environments returns the object of each function in the local value environments.
func environments(t *testing.T) map[string]hclsyntax.Expression {
	t.Helper()
	all := map[string]hclsyntax.Expression{}
	for _, locals := range parse(t).blocks("locals") {
		if locals.Attributes["environments"] == nil {
			continue
		}
		for _, item := range locals.attribute(t, "environments").Expr.(*hclsyntax.ObjectConsExpr).Items {
			all[hcl.ExprAsKeyword(item.KeyExpr)] = item.ValueExpr
		}
	}
	return all
}

func TestAlarmsAndDashboardReadMetricsThatTheFunctionWrites(t *testing.T) {
	t.Parallel()
	written := []string{config.MetricCallLatency}
	report := read(t, "../adapters/sqs/report.go")
	for _, match := range regexp.MustCompile(`Metric\w+ += "(\w+)"`).FindAllStringSubmatch(report, -1) {
		written = append(written, match[1])
	}
	for _, r := range slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons()) {
		written = append(written, "Reason="+string(r))
	}
	for _, s := range order.Statuses() {
		written = append(written, "Status="+string(s))
	}
	for _, result := range slices.Concat(webhookResults(t), receiptResults(t)) {
		written = append(written, "Result="+result)
	}
	written = append(written, functionMetrics(t)...)
	for _, reason := range publishReasons(t) {
		written = append(written, "Reason="+reason)
	}
	for _, dimension := range reconcileMetrics(t) {
		for _, result := range reconcileResults(t) {
			written = append(written, dimension+"="+result)
		}
	}
	setting := regexp.MustCompile(`Setting\w+ +Setting = "(\w+)"`)
	settings := setting.FindAllStringSubmatch(read(t, "../adapters/sqs/settings.go"), -1)
	for _, match := range settings {
		written = append(written, "Setting="+match[1])
	}
	metrics := readMetrics(t)
	for _, match := range settings {
		if !slices.Contains(metrics, "Setting="+match[1]) {
			t.Errorf("setting %s: no alarm reads it", match[1])
		}
	}
	if len(settings) == 0 || len(metrics) < 20 {
		t.Fatalf("got only the metrics %q and the settings %q", metrics, settings)
	}
	for _, name := range metrics {
		if !slices.Contains(written, name) {
			t.Errorf("%s: read by an alarm or the dashboard, but not written by the function", name)
		}
	}
}

// functionMetrics returns the metrics that the code in functions/ writes.
func functionMetrics(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../functions/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`(?:[mM]eter\.\w+\(|\bmetric\w+ = )"(\w+)"`)
	for _, file := range files {
		for _, match := range metric.FindAllStringSubmatch(read(t, file), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// publishReasons returns the reasons for which the publish function does not publish.
func publishReasons(t *testing.T) (reasons []string) {
	t.Helper()
	_, constants, _ := strings.Cut(read(t, "../functions/publish/run.go"), "const (\n")
	constants, _, _ = strings.Cut(constants, "\n)\n")
	for _, match := range regexp.MustCompile(`\w+ += "(\w+)"`).FindAllStringSubmatch(constants, -1) {
		reasons = append(reasons, match[1])
	}
	if len(reasons) == 0 {
		t.Fatal("functions/publish: no reasons")
	}
	return reasons
}

// webhookResults returns the results of the webhook function.
func webhookResults(t *testing.T) (results []string) {
	t.Helper()
	for pattern, file := range map[string]string{
		`\n\twebhook\w+ += "(\w+)"`:         "../adapters/stripe/webhook.go",
		`\n\tHint\w+ +Followed = "(\w+)"`:   "../domain/order/follow.go",
		`Hint\w+ order\.Followed = "(\w+)"`: "../domain/refund/follow.go",
	} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1)
		if len(found) == 0 {
			t.Fatalf("%s: no results", file)
		}
		for _, match := range found {
			results = append(results, match[1])
		}
	}
	return results
}

// receiptResults returns the statuses of receipts, which the receipt function counts.
func receiptResults(t *testing.T) (results []string) {
	t.Helper()
	files, err := filepath.Glob("../domain/receipt/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, match := range regexp.MustCompile(`\n\t\w+ +Status = "(\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			results = append(results, match[1])
		}
	}
	if len(results) == 0 {
		t.Fatal("domain/receipt: no statuses")
	}
	return results
}

// webhookMetric returns the name of the metric that has a Result.
func webhookMetric(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`meter\.Count\("(\w+)", "Result", `).FindStringSubmatch(
		read(t, "../functions/webhook/main.go"))
	if found == nil {
		t.Fatal("functions/webhook: no metric with the dimension Result")
	}
	return found[1]
}

func TestEveryWebhookResultHasARowInTheReference(t *testing.T) {
	t.Parallel()
	reference := read(t, "../docs/reference/metrics.md")
	if want := "\n| `" + webhookMetric(t) + "` | `Result` |"; !strings.Contains(reference, want) {
		t.Errorf("metrics.md: does not contain %q", want)
	}
	_, section, ok := strings.Cut(reference, "\n| `Result` |")
	if !ok {
		t.Fatal("metrics.md: no table of the results")
	}
	table, _, _ := strings.Cut(section, "\n\n")
	var document []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		document = append(document, match[1])
	}
	code := webhookResults(t)
	slices.Sort(code)
	slices.Sort(document)
	if diff := cmp.Diff(document, code); diff != "" {
		t.Errorf("results differ (- docs/reference/metrics.md, + code):\n%s", diff)
	}
}

// Stripe sends an endpoint only the events that it lists.
func TestTheGuideSubscribesToTheEventsThatTheWebhookFunctionReads(t *testing.T) {
	t.Parallel()
	event := regexp.MustCompile(`(?:payment_intent|charge|refund)\.[a-z_.]+`)
	_, code, _ := strings.Cut(read(t, "../adapters/stripe/event.go"), "switch e.Type {")
	code, _, _ = strings.Cut(code, "return parsed")
	_, guide, _ := strings.Cut(read(t, "../docs/guides/deploy.md"), "events='")
	guide, _, _ = strings.Cut(guide, "'")
	want, got := event.FindAllString(code, -1), strings.Fields(guide)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(got, want); diff != "" || len(want) == 0 {
		t.Errorf("events differ (- docs/guides/deploy.md, + adapters/stripe):\n%s", diff)
	}
}

func TestTheGuideListsThePermissionsOfTheKey(t *testing.T) {
	t.Parallel()
	want := map[string]string{} // by resource
	calls := regexp.MustCompile(`return "([\w ]+): (Read|Write)"`)
	for _, match := range calls.FindAllStringSubmatch(read(t, "../adapters/stripe/request.go"), -1) {
		want[match[1]] = max(want[match[1]], match[2]) // Write includes Read
	}
	got := map[string]string{}
	row := regexp.MustCompile(`\n\| ([\w ]+): (Read|Write) \|`)
	for _, match := range row.FindAllStringSubmatch(read(t, "../docs/guides/deploy.md"), -1) {
		got[match[1]] = match[2]
	}
	if diff := cmp.Diff(got, want); diff != "" || len(want) == 0 {
		t.Errorf("permissions differ (- docs/guides/deploy.md, + adapters/stripe):\n%s", diff)
	}
}

// reconcileMetrics returns the metrics of the reconcile function and their dimension.
func reconcileMetrics(t *testing.T) map[string]string {
	t.Helper()
	metrics := map[string]string{}
	for _, match := range regexp.MustCompile(`meter\.\w+\("(\w+)", "(\w+)"`).FindAllStringSubmatch(
		read(t, "../functions/reconcile/run.go"), -1) {
		metrics[match[1]] = match[2]
	}
	if len(metrics) == 0 {
		t.Fatal("functions/reconcile: no metrics")
	}
	return metrics
}

// reconcileResults returns the results of the reconcile function: its own, and those of
// Follow for a hint that names only the order.
func reconcileResults(t *testing.T) (results []string) {
	t.Helper()
	otherHints := []order.Followed{
		order.HintUnbound, order.HintAgrees, order.HintDisputed, order.HintDisputeClosed,
	}
	for pattern, file := range map[string]string{
		`"(\w+)": +(?:done\.|len\(done\.)`:   "../functions/reconcile/run.go",
		`\n\tHint\w+ +Followed = "(\w+)"`:    "../domain/order/follow.go",
		`\nconst Hint\w+ Followed = "(\w+)"`: "../domain/order/reconcile.go",
	} {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			if !slices.Contains(otherHints, order.Followed(match[1])) {
				results = append(results, match[1])
			}
		}
	}
	return results
}

func TestEveryReconcileMetricAndResultHasARowInTheReference(t *testing.T) {
	t.Parallel()
	_, section, ok := strings.Cut(read(t, "../docs/reference/metrics.md"), "\n## The reconcile function\n")
	if !ok {
		t.Fatal("metrics.md: no section of the reconcile function")
	}
	for name, dimension := range reconcileMetrics(t) {
		if want := "\n| `" + name + "` | `" + dimension + "` |"; !strings.Contains(section, want) {
			t.Errorf("metrics.md: does not contain %q", want)
		}
	}
	_, table, _ := strings.Cut(section, "\n| `Result` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var document []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		document = append(document, match[1])
	}
	code := reconcileResults(t)
	slices.Sort(code)
	slices.Sort(document)
	if diff := cmp.Diff(document, code); diff != "" {
		t.Errorf("results differ (- docs/reference/metrics.md, + code):\n%s", diff)
	}
}

// The time of an event is that of a worker's clock, and its arrival that of the stream's.
func TestTheScanForUnpublishedEventsAllowsForTwoClocks(t *testing.T) {
	t.Parallel()
	text := read(t, "../docs/guides/operate.md")
	for _, sign := range []string{"-", "+"} {
		if want := fmt.Sprintf("Z %s%d minutes' +%%s000)", sign, order.MaxSkew/time.Minute); !strings.Contains(text, want) {
			t.Errorf("operate.md: does not contain %q", want)
		}
	}
}

func TestTheModuleReconcilesAtTheDefaultRateOfTheFunction(t *testing.T) {
	t.Parallel()
	got := parse(t).one(t, "variable", "reconcile_rate").number(t, "default")
	want := fmt.Sprintf(`env:"STRIPE_RATE"     envDefault:"%d"`, got)
	if !strings.Contains(read(t, "../functions/reconcile/config.go"), want) {
		t.Errorf("reconcile_rate: default: got %d, want that of STRIPE_RATE", got)
	}
}

// In the tests of the module all aliases have the same ARN.
func TestEveryTriggerInvokesItsOwnFunction(t *testing.T) {
	t.Parallel()
	module := parse(t)
	schedule := module.one(t, "resource", "aws_scheduler_schedule", "reconcile").one(t, "target")
	config := module.one(t, "resource", "aws_lambda_function_event_invoke_config", "reconcile")
	policy := module.one(t, "resource", "aws_iam_role_policy", "reconcile_schedule")
	orders := module.one(t, "resource", "aws_lambda_event_source_mapping", "orders")
	stream := module.one(t, "resource", "aws_lambda_event_source_mapping", "publish")
	receipts := module.one(t, "resource", "aws_lambda_event_source_mapping", "receipts")
	webhook := module.one(t, "resource", "aws_apigatewayv2_integration", "webhook")
	intake := module.one(t, "resource", "aws_apigatewayv2_integration", "intake")
	for _, test := range []struct {
		name, function string
		attribute      *hclsyntax.Attribute
	}{
		{"schedule", "reconcile", schedule.attribute(t, "arn")},
		{"policy of the schedule", "reconcile", policy.attribute(t, "policy")},
		{"event invoke config", "reconcile", config.attribute(t, "function_name")},
		{"mapping of the order queue", "order", orders.attribute(t, "function_name")},
		{"mapping of the stream", "publish", stream.attribute(t, "function_name")},
		{"mapping of the receipt queue", "receipt", receipts.attribute(t, "function_name")},
		{"API of the webhook", "webhook", webhook.attribute(t, "integration_uri")},
		{"API of the orders", "intake", intake.attribute(t, "integration_uri")},
	} {
		got := keysOf(test.attribute, "aws_lambda_alias.live")
		if diff := cmp.Diff(got, []string{test.function}); diff != "" {
			t.Errorf("%s: aliases differ (-got +want):\n%s", test.name, diff)
		}
	}
}

// So do all roles of functions.
func TestOnlyTheFunctionThatUsesAQueueMaySendToIt(t *testing.T) {
	t.Parallel()
	for queue, function := range map[string]string{"dead_letters": "order", "unpublished": "publish"} {
		policy := parse(t).one(t, "resource", "aws_sqs_queue_policy", queue).attribute(t, "policy")
		if diff := cmp.Diff(keysOf(policy, "aws_iam_role.functions"), []string{function}); diff != "" {
			t.Errorf("%s: roles differ (-got +want):\n%s", queue, diff)
		}
	}
}

// keysOf returns the keys of a resource's instances that an attribute refers to.
func keysOf(attribute *hclsyntax.Attribute, resource string) (instances []string) {
	for _, traversal := range attribute.Expr.Variables() {
		if len(traversal) < 3 || reference(traversal) != resource {
			continue
		}
		if key, ok := traversal[2].(hcl.TraverseIndex); ok {
			instances = append(instances, key.Key.AsString())
		}
	}
	return instances
}

// readMetrics returns the functions' metrics, reasons, settings, statuses and results
// that alarms.tf and dashboard.tf read.
func readMetrics(t *testing.T) (metrics []string) {
	t.Helper()
	alarms, dashboard := read(t, "terraform/alarms.tf"), read(t, "terraform/dashboard.tf")
	for pattern, text := range map[string]string{
		`merge\(local\.app[^,]*, \{ name = "(\w+)"`: alarms,
		`"orderonce", "(\w+)"`:                      dashboard,
		`(\w+) += \{ dimension = `:                  dashboard,
	} {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			metrics = append(metrics, match[1])
		}
	}
	declined := regexp.MustCompile(`Status = "(\w+)" \}`).FindStringSubmatch(alarms)
	metrics = append(metrics, "Status="+declined[1])
	for dimension, pattern := range map[string]string{
		"Reason=":  `for reason in \[([^\]]+)\]`,
		"Setting=": `for setting in \[([^\]]+)\]`,
		"Result=":  `for result in \[([^\]]+)\]`,
		"Status=":  `for status in \[([^\]]+)\]`,
	} {
		list := regexp.MustCompile(pattern).FindStringSubmatch(alarms)[1]
		for _, value := range regexp.MustCompile(`\w+`).FindAllString(list, -1) {
			metrics = append(metrics, dimension+value)
		}
	}
	return metrics
}

// On call follows these references, so each must lead to a heading or to the row of a
// reason.
func TestAlarmsAndPinsReferToHeadingsAndReasonsThatExist(t *testing.T) {
	t.Parallel()
	text := read(t, "terraform/alarms.tf") + read(t, "terraform/pins.tf")
	text = strings.NewReplacer("${local.runbook}", "docs/guides/operate.md",
		"${local.failures}", "docs/reference/failures.md", `\"`, `"`).Replace(text)
	reference := regexp.MustCompile(`(docs/[a-z/]+\.md), (?:"([^"]+)"|([a-z_]+))`)
	references := reference.FindAllStringSubmatch(oneLine(text), -1)
	if len(references) < 10 {
		t.Fatalf("got only the references %q", references)
	}
	for _, match := range references {
		file, heading, reason := match[1], match[2], match[3]
		document := read(t, "../"+file)
		switch {
		case heading != "" && !strings.Contains(document, "\n## "+heading+"\n"):
			t.Errorf("%s: no heading %q", file, heading)
		case reason != "" && !strings.Contains(document, "\n| `"+reason+"` |"):
			t.Errorf("%s: no row %q", file, reason)
		}
	}
}

// Alarms are the largest part of what an idle deployment costs. The tests of the module
// count them, and this test compares the documentation with that count.
func TestDocumentsStateTheNumberOfAlarms(t *testing.T) {
	t.Parallel()
	tests := read(t, "terraform/tests/alarms.tftest.hcl")
	counts := regexp.MustCompile(`\) == (\d+)\n`).FindAllStringSubmatch(tests, 2)
	if len(counts) != 2 {
		t.Fatalf("alarms.tftest.hcl: got the counts %q, want those of alarms and metrics", counts)
	}
	alarms, metrics := counts[0][1], counts[1][1]
	for file, want := range map[string]string{
		"../docs/guides/deploy.md": metrics + " metrics in " + alarms + " alarms",
		"terraform/README.md":      alarms + " alarms",
	} {
		if !strings.Contains(oneLine(read(t, file)), want) {
			t.Errorf("%s: does not contain %q", file, want)
		}
	}
}

// A rotation writes the secret and publishes the function in one apply. If the secret
// were written second, new execution environments would read the old one.
func TestTheFunctionsArePublishedAfterTheirSecretsAreWritten(t *testing.T) {
	t.Parallel()
	module := parse(t)
	expressions := []hclsyntax.Expression{
		module.one(t, "resource", "aws_lambda_function", "functions").attribute(t, "description").Expr,
	}
	for _, locals := range module.blocks("locals") { // local.stripe_keys, which the description uses
		for name, attribute := range locals.Attributes {
			if strings.HasPrefix(name, "stripe_") {
				expressions = append(expressions, attribute.Expr)
			}
		}
	}
	var uses []string
	for _, e := range expressions {
		for _, traversal := range e.Variables() {
			uses = append(uses, reference(traversal))
		}
	}
	if !slices.Contains(uses, "local.stripe_keys") {
		t.Errorf("description: got references to %q, want one to local.stripe_keys", uses)
	}
	for _, secret := range []string{"stripe", "stripe_read", "webhook"} {
		if want := "aws_secretsmanager_secret_version." + secret; !slices.Contains(uses, want) {
			t.Errorf("description: got references to %q, want one to %s", uses, want)
		}
	}
}

// reference returns the first two parts of a reference, such as the type and the name of
// a resource.
func reference(traversal hcl.Traversal) string {
	name := traversal.RootName()
	if len(traversal) > 1 {
		if second, ok := traversal[1].(hcl.TraverseAttr); ok {
			name += "." + second.Name
		}
	}
	return name
}

// A plan that deletes something must delete it after what names it, and after what may
// refuse to be deleted. Terraform's tests apply nothing at AWS, so they see no order.
func TestWhatIsDeletedIsDeletedInAnOrderThatAWSAccepts(t *testing.T) {
	t.Parallel()
	authorizer := parse(t).one(t, "resource", "aws_apigatewayv2_authorizer", "intake").one(t, "lifecycle")
	if !authorizer.value(t, "create_before_destroy").True() {
		t.Error("authorizer: deleted before the routes stop naming it, which API Gateway refuses")
	}
	receipts := parse(t).one(t, "resource", "aws_dynamodb_table", "receipts")
	var before []string
	for _, traversal := range receipts.attribute(t, "depends_on").Expr.Variables() {
		before = append(before, reference(traversal))
	}
	for _, queue := range []string{"aws_sqs_queue.receipts", "aws_sqs_queue.receipts_dead"} {
		if !slices.Contains(before, queue) {
			t.Errorf("%s: deleted with its messages before the protected table stops the apply", queue)
		}
	}
}

// The oldest release that versions.tf accepts must pass every test, and a later one too.
func TestTheOldestTerraformRunsInCI(t *testing.T) {
	t.Parallel()
	versions := read(t, "terraform/versions.tf")
	oldest := regexp.MustCompile(`required_version = ">= ([\d.]+)"`).FindStringSubmatch(versions)
	if oldest == nil {
		t.Fatal("versions.tf: no required_version")
	}
	ci := read(t, "../.github/workflows/ci.yml")
	tested := regexp.MustCompile(`terraform_version: ([\d.]+)`).FindAllStringSubmatch(ci, -1)
	if len(tested) != 2 || !slices.ContainsFunc(tested, func(v []string) bool {
		return strings.HasPrefix(v[1], oldest[1]+".")
	}) {
		t.Errorf("ci.yml: runs Terraform %q, want %s and a later release", tested, oldest[1])
	}
}

// The roles must be allowed to use a new key before messages, rows and secrets are
// encrypted with it.
func TestTheRolesMayUseAKeyBeforeAnythingIsEncryptedWithIt(t *testing.T) {
	t.Parallel()
	module := parse(t)
	for _, resource := range [][2]string{
		{"aws_sqs_queue", "orders"},
		{"aws_sqs_queue", "dead_letters"},
		{"aws_sqs_queue", "unpublished"},
		{"aws_dynamodb_table", "orders"},
		{"aws_dynamodb_table", "stock"},
		{"aws_dynamodb_table", "receipts"},
		{"aws_secretsmanager_secret", "stripe"},
		{"aws_secretsmanager_secret", "webhook"},
	} {
		var after []string
		block := module.one(t, "resource", resource[0], resource[1])
		if attribute := block.Attributes["depends_on"]; attribute != nil {
			for _, traversal := range attribute.Expr.Variables() {
				after = append(after, reference(traversal))
			}
		}
		if !slices.Contains(after, "aws_iam_role_policy.keys") {
			t.Errorf("%s.%s: depends_on: got %q, want aws_iam_role_policy.keys", resource[0], resource[1], after)
		}
	}
}

// The engine of the tests checks no permission, so a call that no role allows fails
// only in AWS.
func TestTheRolesAllowWhatTheFunctionsDoWithTheirTables(t *testing.T) {
	t.Parallel()
	users := map[string][]string{ // action, and what in a function's code needs it
		"dynamodb:GetItem":    {"refund.Refresher{", "refund.Processor{", "dynamodb.NewReceipts("},
		"dynamodb:Query":      {"order.Processor{", "order.Follower{", "order.Cancellation{", "dynamodb.Registrations{"},
		"dynamodb:UpdateItem": {"order.Processor{", "order.Follower{", "dynamodb.Registrations{"},
		"dynamodb:PutItem":    {"dynamodb.New(", "dynamodb.NewReceipts("}, // part of TransactWriteItems
		"dynamodb:Scan":       {".Scan("},                                 // of scripts/orders alone
	}
	for _, action := range tableActions(t) {
		if users[action] == nil {
			t.Errorf("adapters/dynamodb calls %s: name here what needs it", action)
		}
	}
	module := parse(t)
	for _, function := range []string{"order", "webhook", "reconcile", "publish", "intake", "receipt"} {
		policy := module.one(t, "resource", "aws_iam_role_policy", function).attribute(t, "policy")
		code := functionCode(t, function)
		for action, all := range users {
			uses := func(user string) bool { return strings.Contains(code, user) }
			got, want := slices.Contains(texts(policy.Expr), action), slices.ContainsFunc(all, uses)
			if got != want {
				t.Errorf("%s: %s allowed: got %t, want %t as for %s", function, action, got, want, all)
			}
		}
	}
}

// A write with another attribute is denied, so orders by HTTP would fail in AWS alone.
func TestTheIntakeFunctionMayWriteTheAttributesOfARegistration(t *testing.T) {
	t.Parallel()
	var got [][]string
	policy := parse(t).one(t, "resource", "aws_iam_role_policy", "intake").attribute(t, "policy")
	_ = hclsyntax.VisitAll(policy.Expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if item, ok := n.(*hclsyntax.ObjectConsExpr); ok {
			for _, field := range item.Items {
				if slices.Contains(texts(field.KeyExpr), "dynamodb:Attributes") {
					got = append(got, sorted(texts(field.ValueExpr)))
				}
			}
		}
		return nil
	})
	want := [][]string{
		registrationAttributes(t, "func encodeRegistration(", `"(\w+)": `),
		registrationAttributes(t, ") MarkSent(", `"(\w+)": |(openShard|dueAt)|attribute_exists\((\w+)\)`),
	}
	if diff := cmp.Diff(got, want); diff != "" || len(want[0]) < 5 || len(want[1]) < 4 {
		t.Errorf("attributes differ (- infra/terraform/iam.tf, + adapters/dynamodb):\n%s", diff)
	}
}

// registrationAttributes returns what the groups of a pattern match in a function of
// registration.go.
func registrationAttributes(t *testing.T, function, pattern string) (names []string) {
	t.Helper()
	_, code, _ := strings.Cut(read(t, "../adapters/dynamodb/registration.go"), function)
	code, _, _ = strings.Cut(code, "\n}\n")
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(code, -1) {
		names = append(names, strings.Join(match[1:], ""))
	}
	return slices.Compact(sorted(names))
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// EventBridge drops an event that no rule matches, so a wrong name sends no receipt.
func TestTheRuleOfReceiptsMatchesEventsThatExist(t *testing.T) {
	t.Parallel()
	document := read(t, "../docs/reference/events.md")
	list := regexp.MustCompile(`"detail-type" = \[("Order [^\]]+)\]`).FindStringSubmatch(read(t, "terraform/receipt.tf"))
	if list == nil {
		t.Fatal("receipt.tf: no rule on order events")
	}
	for _, match := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list[1], -1) {
		if !strings.Contains(document, "\n| `"+match[1]+"` |") {
			t.Errorf("events.md: no row %q, which a rule in receipt.tf matches", match[1])
		}
	}
}

// tableActions returns the IAM actions of the SDK's operations that the store calls.
func tableActions(t *testing.T) (actions []string) {
	t.Helper()
	files, err := filepath.Glob("../adapters/dynamodb/*.go")
	if err != nil {
		t.Fatal(err)
	}
	operation := regexp.MustCompile(`(?:client\.|dynamodb\.New)(\w+?)(?:Paginator)?\(`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range operation.FindAllStringSubmatch(read(t, file), -1) {
			switch name := match[1]; name {
			case "TransactWriteItems":
				actions = append(actions, "dynamodb:PutItem", "dynamodb:UpdateItem")
			case "FromConfig":
			default:
				actions = append(actions, "dynamodb:"+name)
			}
		}
	}
	if len(actions) < 4 {
		t.Fatalf("adapters/dynamodb: got only the actions %q", actions)
	}
	return actions
}

// functionCode returns the code of a function without its tests.
func functionCode(t *testing.T, name string) string {
	t.Helper()
	files, err := filepath.Glob("../functions/" + name + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("functions/%s: got %d files: %v", name, len(files), err)
	}
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(read(t, file))
		}
	}
	return code.String()
}

// texts returns the literal texts in an expression.
func texts(e hclsyntax.Expression) (all []string) {
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		if literal, ok := n.(*hclsyntax.LiteralValueExpr); ok && literal.Val.Type() == cty.String {
			all = append(all, literal.Val.AsString())
		}
		return nil
	})
	return all
}

func TestEveryPolicyStatementHasARowInTheReference(t *testing.T) {
	t.Parallel()
	var code, document []string
	module := parse(t)
	for _, block := range slices.Concat(module.blocks("resource"), module.blocks("locals")) {
		fields(block.Body, func(name string, value hclsyntax.Expression) {
			if name == "Sid" {
				sid, _ := value.Value(nil)
				code = append(code, sid.AsString())
			}
		})
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)`")
	for _, match := range row.FindAllStringSubmatch(read(t, "../docs/reference/iam.md"), -1) {
		document = append(document, match[1])
	}
	slices.Sort(code)
	slices.Sort(document)
	if diff := cmp.Diff(document, code); diff != "" || len(code) == 0 {
		t.Errorf("statements differ (- docs/reference/iam.md, + infra/terraform):\n%s", diff)
	}
}

func TestEveryVariableAndOutputIsDescribed(t *testing.T) {
	t.Parallel()
	module := parse(t)
	for _, v := range slices.Concat(module.blocks("variable"), module.blocks("output")) {
		if !strings.HasSuffix(strings.TrimSpace(v.text(t, "description")), ".") {
			t.Errorf("%s: description: must end with a period", v.labels[0])
		}
	}
}

// check.sh copies the shared mocks into the test files for OpenTofu.
func TestEveryTestFileUsesTheSharedMocks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("terraform/tests/*.tftest.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files of tests: %v", len(files), err)
	}
	for _, name := range files {
		file, problems := hclparse.NewParser().ParseHCLFile(name)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		provider := body{file.Body.(*hclsyntax.Body), nil}.one(t, "mock_provider", "aws")
		if provider.text(t, "source") != "./tests/mocks" || len(provider.Blocks) > 0 {
			t.Errorf("%s: mock_provider: must have the source ./tests/mocks and no mocks of its own", name)
		}
	}
}

func TestTheModuleAcceptsTheScopesThatTheFunctionAccepts(t *testing.T) {
	t.Parallel()
	variables := read(t, "terraform/variables.tf")
	source := regexp.MustCompile(`regex\("([^"]+)", var\.scope\)`).FindStringSubmatch(variables)
	if source == nil {
		t.Fatal("variables.tf: no validation of the scope")
	}
	rule := regexp.MustCompile(source[1])
	for _, scope := range []string{
		"", "a", "prod", "prod-eu", "orderonce-dev-836569", "A", "prod_eu", "1st", "-a", "a-", "a.b", "a b",
		strings.Repeat("a", 32), strings.Repeat("a", 33),
	} {
		_, err := order.NewScope(scope)
		if got, want := rule.MatchString(scope), err == nil; got != want {
			t.Errorf("scope %q: accepted by the module: got %t, want %t as by the function", scope, got, want)
		}
	}
}

// Users commit their lock file. One that was written with a mirror lacks the checksums of
// the registry ("zh:"), so init would fail for everybody else.
func TestALockFileHasTheChecksumsOfTheRegistry(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile("terraform/.terraform.lock.hcl")
	if err == nil && !strings.Contains(string(lock), `"zh:`) {
		t.Error(".terraform.lock.hcl: written with a mirror: delete it and run terraform init with the registry")
	}
}

// goFile is a Go source file, to read constants that its package does not export.
type goFile struct{ *ast.File }

func parseGo(t *testing.T, path string) goFile {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{file}
}

// assigned returns the duration that is assigned to a field such as live.Retention. The
// file must assign it once.
func (f goFile) assigned(t *testing.T, field string) time.Duration {
	t.Helper()
	var found []ast.Expr
	ast.Inspect(f.File, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, left := range a.Lhs {
				if types.ExprString(left) == field {
					found = append(found, a.Rhs[i])
				}
			}
		}
		return true
	})
	return time.Duration(constant(t, field, found)) * time.Second
}

// set returns the number of the only call with the arguments (field, number) in the file.
func (f goFile) set(t *testing.T, field string) int {
	t.Helper()
	var found []ast.Expr
	ast.Inspect(f.File, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && types.ExprString(call.Args[0]) == field {
			found = append(found, call.Args[1])
		}
		return true
	})
	return constant(t, field, found)
}

// constant returns the value of the only expression, in seconds if it is a duration.
func constant(t *testing.T, field string, found []ast.Expr) int {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("%s: set %d times, want once", field, len(found))
	}
	text := strings.ReplaceAll(types.ExprString(found[0]), "time.Hour", "3600")
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil || value.Value == nil {
		t.Fatalf("%s = %s: not a constant: %v", field, text, err)
	}
	n, err := strconv.Atoi(value.Value.ExactString())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
