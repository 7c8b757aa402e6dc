// Package infra_test keeps infra/terraform and the rest of the house from drifting apart. It reads the module and compares it
// with the table and the queues of tests and local system, with the function's variables and metrics, and with the documents.
// It needs no Terraform, and knows nothing of what Terraform makes of the module: tests/ beside the module does.
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
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// table is what has to be the same here and in the cloud.
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

func TestTheTableOfTheTestsIsTheTableInTheCloud(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(tableHere(), tableInTheCloud(t)); diff != "" {
		t.Errorf("- dynamodbtest, + infra/terraform:\n%s", diff)
	}
}

func tableHere() table {
	definition, ttl := dynamodbtest.TableDefinition("orders"), dynamodbtest.TimeToLiveDefinition("orders")
	keys := func(schema []sdk.KeySchemaElement) (all []string) {
		for _, key := range schema {
			all = append(all, aws.ToString(key.AttributeName)+" "+string(key.KeyType))
		}
		return all
	}
	here := table{
		Billing: string(definition.BillingMode), Stream: string(definition.StreamSpecification.StreamViewType),
		Expiry: aws.ToString(ttl.TimeToLiveSpecification.AttributeName), Keys: keys(definition.KeySchema),
		Attributes: map[string]string{}, Indexes: map[string]index{},
	}
	for _, a := range definition.AttributeDefinitions {
		here.Attributes[aws.ToString(a.AttributeName)] = string(a.AttributeType)
	}
	for _, i := range definition.GlobalSecondaryIndexes {
		here.Indexes[aws.ToString(i.IndexName)] = index{string(i.Projection.ProjectionType), keys(i.KeySchema)}
	}
	return here
}

func tableInTheCloud(t *testing.T) table {
	t.Helper()
	resource := parse(t).one(t, "resource", "aws_dynamodb_table", "orders")
	cloud := table{
		Billing: resource.text(t, "billing_mode"), Stream: resource.text(t, "stream_view_type"),
		Expiry:     resource.one(t, "ttl").text(t, "attribute_name"),
		Keys:       []string{resource.text(t, "hash_key") + " HASH", resource.text(t, "range_key") + " RANGE"},
		Attributes: map[string]string{}, Indexes: map[string]index{},
	}
	for _, a := range resource.blocks("attribute") {
		cloud.Attributes[a.text(t, "name")] = a.text(t, "type")
	}
	for _, i := range resource.blocks("global_secondary_index") {
		var keys []string
		for _, key := range i.blocks("key_schema") {
			keys = append(keys, key.text(t, "attribute_name")+" "+key.text(t, "key_type"))
		}
		cloud.Indexes[i.text(t, "name")] = index{i.text(t, "projection_type"), keys}
	}
	return cloud
}

// queues is what has to be the same here and in the cloud. Time-outs are not, because locally a crash heals within seconds;
// maxReceiveCount is the policy's on both sides.
type queues struct {
	Retention, DeadLetterRetention time.Duration
	BatchSize                      int
}

func TestTheLocalQueuesAreTheQueuesInTheCloud(t *testing.T) {
	t.Parallel()
	local := parseGo(t, "../scripts/local/system/system.go")
	here := queues{
		Retention: local.assigned(t, "live.Retention"), DeadLetterRetention: local.assigned(t, "dead.Retention"),
		BatchSize: local.set(t, "&o.BatchSize"),
	}
	module := parse(t)
	orders := module.one(t, "resource", "aws_sqs_queue", "orders")
	cloud := queues{
		Retention:           orders.seconds(t, "message_retention_seconds"),
		DeadLetterRetention: module.one(t, "resource", "aws_sqs_queue", "dead_letters").seconds(t, "message_retention_seconds"),
		BatchSize:           module.one(t, "resource", "aws_lambda_event_source_mapping", "orders").number(t, "batch_size"),
	}
	if diff := cmp.Diff(here, cloud); diff != "" {
		t.Errorf("- scripts/local, + infra/terraform:\n%s", diff)
	}
}

func TestTheQueueIsWhatTheFunctionCountsOn(t *testing.T) {
	t.Parallel()
	module := parse(t)
	orders := module.one(t, "resource", "aws_sqs_queue", "orders")
	function := module.one(t, "variable", "function_timeout").seconds(t, "default")
	if got, want := orders.seconds(t, "message_retention_seconds"), sqs.DefaultPolicy().Retention; got != want {
		t.Errorf("messages are kept for %v, want %v: the function parks them a day before", got, want)
	}
	if got := orders.seconds(t, "visibility_timeout_seconds"); got < 6*function {
		t.Errorf("messages are hidden for %v, want at least six times %v", got, function)
	}
	// How many receives the policy's delays use up is counted in adapters/sqs.
	if got, want := maxReceives(t, orders), sqs.DefaultPolicy().MaxReceives; got != want {
		t.Errorf("SQS takes messages away after %d receives, want %d: the function parks them before, with a reason", got, want)
	}
	if got := orders.number(t, "max_message_size"); got < 2*sqs.MaxBody {
		t.Errorf("messages have up to %d bytes, want twice the %d of a body: a parked one that is redriven carries attributes", got, sqs.MaxBody)
	}
}

// A function that cannot start parks nothing: each receive costs it one visibility time-out, and then SQS takes the message away.
func TestOnCallKnowsHowLongTheQueueWaitsForAFunctionThatCannotStart(t *testing.T) {
	t.Parallel()
	orders := parse(t).one(t, "resource", "aws_sqs_queue", "orders")
	receives := maxReceives(t, orders)
	lasts := time.Duration(receives) * orders.seconds(t, "visibility_timeout_seconds")
	for _, file := range []string{"terraform/queue.tf", "../docs/guides/operate.md", "../docs/reference/failures.md"} {
		text := strings.Join(strings.Fields(read(t, file)), " ")
		for _, want := range []string{fmt.Sprintf("%d,%03d", receives/1000, receives%1000), fmt.Sprintf("%.0f hours", lasts.Hours())} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
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

func TestTheFunctionKnowsItsVariables(t *testing.T) {
	t.Parallel()
	known := map[string]string{} // name and default
	config := read(t, "../functions/order/config.go")
	for _, match := range regexp.MustCompile(`env:"([A-Z_]+)[^\x60]*?"(?:\s+envDefault:"(\w+)")?`).FindAllStringSubmatch(config, -1) {
		known[match[1]] = match[2]
	}
	var given []string
	for _, locals := range parse(t).blocks("locals") {
		if locals.Attributes["environments"] == nil {
			continue
		}
		fields(locals.attribute(t, "environments").Expr, func(name string, value hclsyntax.Expression) {
			if name != strings.ToUpper(name) {
				return
			}
			given = append(given, name)
			standard, ok := known[name]
			if !ok {
				t.Errorf("the function has no variable %s", name)
			}
			if literal, problems := value.Value(nil); !problems.HasErrors() && literal.AsString() != standard {
				t.Errorf("%s is %q, and the function's own default is %q", name, literal.AsString(), standard)
			}
		})
	}
	for _, needed := range []string{"ORDERS_TABLE", "QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "SCOPE", "STRIPE_SECRET_ARN"} {
		if !slices.Contains(given, needed) {
			t.Errorf("the function does not get %s", needed)
		}
	}
}

func TestAlarmsAndDashboardShowWhatTheFunctionWrites(t *testing.T) {
	t.Parallel()
	written := []string{lambda.MetricCallLatency}
	for _, match := range regexp.MustCompile(`Metric\w+ += "(\w+)"`).FindAllStringSubmatch(read(t, "../adapters/sqs/report.go"), -1) {
		written = append(written, match[1])
	}
	for _, r := range slices.Concat(order.Reasons(), sqs.Reasons()) {
		written = append(written, "Reason="+string(r))
	}
	for _, s := range order.Statuses() {
		written = append(written, "Status="+string(s))
	}
	settings := regexp.MustCompile(`Setting\w+ +Setting = "(\w+)"`).FindAllStringSubmatch(read(t, "../adapters/sqs/settings.go"), -1)
	for _, match := range settings {
		written = append(written, "Setting="+match[1])
	}
	shown := shownMetrics(t)
	for _, match := range settings {
		if !slices.Contains(shown, "Setting="+match[1]) {
			t.Errorf("no alarm shows the setting %s", match[1])
		}
	}
	if len(settings) == 0 || len(shown) < 20 {
		t.Fatalf("found only %q and the settings %q", shown, settings)
	}
	for _, name := range shown {
		if !slices.Contains(written, name) {
			t.Errorf("alarms or dashboard show %s, which the function does not write", name)
		}
	}
}

// shownMetrics are our own metrics, reasons and statuses in alarms.tf and dashboard.tf.
func shownMetrics(t *testing.T) (shown []string) {
	t.Helper()
	alarms, dashboard := read(t, "terraform/alarms.tf"), read(t, "terraform/dashboard.tf")
	for pattern, text := range map[string]string{
		`merge\(local\.app[^,]*, \{ name = "(\w+)"`: alarms,
		`"orderonce", "(\w+)"`:    dashboard,
		`(\w+) = \{ dimension = `: dashboard,
	} {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			shown = append(shown, match[1])
		}
	}
	for dimension, pattern := range map[string]string{
		"Reason=": `for reason in \[([^\]]+)\]`, "Setting=": `for setting in \[([^\]]+)\]`, "Status=": `Status = ([^ ]+) \}`,
	} {
		for value := range strings.SplitSeq(regexp.MustCompile(pattern).FindStringSubmatch(alarms)[1], ", ") {
			shown = append(shown, dimension+strings.Trim(value, `"`))
		}
	}
	return shown
}

// Alarms are the larger part of what an idle deployment costs. The module's tests count them; this compares the documents.
func TestTheDocumentsCountTheAlarms(t *testing.T) {
	t.Parallel()
	tests := read(t, "terraform/tests/alarms.tftest.hcl")
	counts := regexp.MustCompile(`\) == (\d+)\n`).FindAllStringSubmatch(tests, 2)
	if len(counts) != 2 {
		t.Fatalf("got the counts %q of alarms.tftest.hcl, want alarms and metrics", counts)
	}
	number, metrics := counts[0][1], counts[1][1]
	for file, want := range map[string]string{
		"../docs/guides/deploy.md": metrics + " metrics in " + number + " alarms",
		"terraform/README.md":      number + " alarms",
	} {
		if text := strings.Join(strings.Fields(read(t, file)), " "); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// A rotation writes the secret and publishes the function in one apply. Were the secret written second, new environments
// would still read the old key.
func TestTheFunctionIsPublishedAfterItsSecretIsWritten(t *testing.T) {
	t.Parallel()
	function := parse(t).one(t, "resource", "aws_lambda_function", "functions")
	var uses []string
	for _, traversal := range function.attribute(t, "description").Expr.Variables() {
		uses = append(uses, traversal.RootName())
	}
	if !slices.Contains(uses, "aws_secretsmanager_secret_version") {
		t.Errorf("the description uses %q, want the secret's version: the function must depend on it", uses)
	}
}

// A new key must be in the role before messages, rows and the secret are encrypted with it.
func TestTheRoleMayUseAKeyBeforeAnythingIsEncryptedWithIt(t *testing.T) {
	t.Parallel()
	module := parse(t)
	for _, resource := range [][2]string{
		{"aws_sqs_queue", "orders"},
		{"aws_sqs_queue", "dead_letters"},
		{"aws_dynamodb_table", "orders"},
		{"aws_secretsmanager_secret", "stripe"},
	} {
		var after []string
		if attribute := module.one(t, "resource", resource[0], resource[1]).Attributes["depends_on"]; attribute != nil {
			for _, traversal := range attribute.Expr.Variables() {
				after = append(after, traversal.RootName()+"."+traversal[1].(hcl.TraverseAttr).Name)
			}
		}
		if !slices.Contains(after, "aws_iam_role_policy.keys") {
			t.Errorf("%s.%s depends on %q, want aws_iam_role_policy.keys", resource[0], resource[1], after)
		}
	}
}

func TestEveryStatementHasARowInTheDocuments(t *testing.T) {
	t.Parallel()
	var code, document []string
	for _, resource := range parse(t).blocks("resource") {
		fields(resource.Body, func(name string, value hclsyntax.Expression) {
			if name == "Sid" {
				sid, _ := value.Value(nil)
				code = append(code, sid.AsString())
			}
		})
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(read(t, "../docs/reference/iam.md"), -1) {
		document = append(document, match[1])
	}
	slices.Sort(code)
	slices.Sort(document)
	if diff := cmp.Diff(document, code); diff != "" || len(code) == 0 {
		t.Errorf("- docs/reference/iam.md, + infra/terraform:\n%s", diff)
	}
}

func TestEveryVariableAndOutputIsDescribed(t *testing.T) {
	t.Parallel()
	module := parse(t)
	for _, v := range slices.Concat(module.blocks("variable"), module.blocks("output")) {
		if !strings.HasSuffix(strings.TrimSpace(v.text(t, "description")), ".") {
			t.Errorf("%s: want a description that is a sentence", v.labels[0])
		}
	}
}

// OpenTofu has no mock_provider that reads its mocks from a folder: init, validate and test all refuse it.
func TestEveryTestFileHoldsItsMocks(t *testing.T) {
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
		if provider.Attributes["source"] != nil || len(provider.blocks("mock_data")) == 0 {
			t.Errorf("%s: the mocks are not in the file itself", name)
		}
	}
}

func TestTheScopeIsOneThatTheFunctionAccepts(t *testing.T) {
	t.Parallel()
	source := regexp.MustCompile(`regex\("([^"]+)", var\.scope\)`).FindStringSubmatch(read(t, "terraform/variables.tf"))
	if source == nil {
		t.Fatal("variables.tf does not check the scope")
	}
	rule := regexp.MustCompile(source[1])
	for _, scope := range []string{
		"", "a", "prod", "prod-eu", "orderonce-dev-836569", "A", "prod_eu", "1st", "-a", "a-", "a.b", "a b",
		strings.Repeat("a", 32), strings.Repeat("a", 33),
	} {
		_, err := order.NewScope(scope)
		if got, want := rule.MatchString(scope), err == nil; got != want {
			t.Errorf("%q: the module accepts it: %t, the function: %t", scope, got, want)
		}
	}
}

// Users commit their lock file. One that a mirror's provider wrote lacks the registry's checksums ("zh:"), and would break
// init for everybody else.
func TestALockFileIsTheRegistrys(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile("terraform/.terraform.lock.hcl")
	if err == nil && !strings.Contains(string(lock), `"zh:`) {
		t.Error("terraform/.terraform.lock.hcl was written with a mirror: delete it, and run terraform init with the registry")
	}
}

// goFile is a Go source file, for constants that its package keeps to itself.
type goFile struct{ *ast.File }

func parseGo(t *testing.T, path string) goFile {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{file}
}

// assigned is the duration that is assigned to a field, such as live.Retention, once.
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

// set is the number that set(field, number) puts there, once.
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

// constant is what the one expression comes to, in seconds if it is a duration.
func constant(t *testing.T, of string, found []ast.Expr) int {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("%s is set %d times, want once", of, len(found))
	}
	text := strings.ReplaceAll(types.ExprString(found[0]), "time.Hour", "3600")
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil || value.Value == nil {
		t.Fatalf("%s = %s is no constant: %v", of, text, err)
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
