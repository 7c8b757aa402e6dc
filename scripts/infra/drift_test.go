// Package infra_test compares infra/terraform with the rest of the repository: the table
// and the queues of the tests and the local system, the variables and metrics of the
// functions, and the documentation. It does not run Terraform: what Terraform plans is
// tested by the tests beside it, whose listings of policies, alarms and environments it
// reads. Paths are relative to the folder infra.
package infra_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/settle"
)

// folder has the files that the tests read. The tests are not in it, because a parser of
// expressions is nothing that the product requires.
const folder = "../../infra/"

// module is the folder of the module within it.
const module = "terraform/modules/orderonce/"

// table has the properties that the module's table shares with the one of the tests.
type table struct {
	Billing, Stream, Expiry string
	Keys                    []string
	Attributes              map[string]string
	Indexes                 map[string][]string // projection and keys
}

func TestTheTablesEqualThoseOfTheTests(t *testing.T) {
	orders := testTable(dynamodbtest.TableDefinition("orders"))
	orders.Expiry = dynamodbtest.Expiry
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
			all = append(all, *key.AttributeName+" "+string(key.KeyType))
		}
		return all
	}
	result := table{
		Billing: string(definition.BillingMode), Keys: keys(definition.KeySchema),
		Attributes: map[string]string{}, Indexes: map[string][]string{},
	}
	if definition.StreamSpecification != nil {
		result.Stream = string(definition.StreamSpecification.StreamViewType)
	}
	for _, a := range definition.AttributeDefinitions {
		result.Attributes[*a.AttributeName] = string(a.AttributeType)
	}
	for _, i := range definition.GlobalSecondaryIndexes {
		result.Indexes[*i.IndexName] = append([]string{string(i.Projection.ProjectionType)}, keys(i.KeySchema)...)
	}
	return result
}

func moduleTable(t *testing.T, name string) table {
	t.Helper()
	text := resource(t, "aws_dynamodb_table."+name)
	one := func(pattern string) string { return strings.Join(all(pattern, text), " ") }
	result := table{
		Billing: one(`billing_mode += "(.+)"`), Stream: one(`stream_view_type += "(.+)"`),
		Expiry:     one(`(?s)ttl \{.*?attribute_name = "(\w+)"`),
		Attributes: map[string]string{}, Indexes: map[string][]string{},
	}
	for _, key := range all(`hash_key += "(.+)"`, text) {
		result.Keys = append(result.Keys, key+" HASH")
	}
	for _, key := range all(`range_key += "(.+)"`, text) {
		result.Keys = append(result.Keys, key+" RANGE")
	}
	for _, attribute := range all(`attribute \{\s+(name = "\w+"\s+type = "\w")`, text) {
		words := all(`"(\w+)"`, attribute)
		result.Attributes[words[0]] = words[1]
	}
	for _, index := range all(`(?ms)^  global_secondary_index \{(.*?)^  \}`, text) {
		words := all(`"(\w+)"`, index) // name, projection, keys with their types
		for i := 2; i < len(words); i += 2 {
			words[i/2+1] = words[i] + " " + words[i+1]
		}
		result.Indexes[words[0]] = words[1 : len(words)/2+1]
	}
	return result
}

func TestTheQueuesMeetTheAssumptionsOfTheFunctions(t *testing.T) {
	days := all(`message_retention_seconds += (\d+) \* 24 \* 60 \* 60\n`, resource(t, "aws_sqs_queue.queues"))
	if want := fmt.Sprint(int(sqs.DefaultPolicy().Retention.Hours()) / 24); !slices.Equal(days, []string{want}) {
		t.Errorf("message_retention_seconds: got %v days, want %s, because a function parks a day before", days, want)
	}
	// A test in adapters/sqs counts how many receives the delays of the policy need. Nothing
	// receives from the example of publish.tf.
	receives := matches(t, `receives += (\d+)`, module+"*.tf")
	if want := []string{"20", fmt.Sprint(sqs.DefaultPolicy().MaxReceives)}; !slices.Equal(receives, want) {
		t.Errorf("maxReceiveCount: got %v, want %v, so that each function parks first, with a reason", receives, want)
	}
	for _, kib := range matches(t, `max_size += (\d+) \* 1024\n`, module+"*.tf") {
		if n, err := strconv.Atoi(kib); err != nil || n<<10 < 2*sqs.MaxBody {
			t.Errorf("max_message_size: got %s KiB, want at least %d bytes: a redriven message has attributes", kib, 2*sqs.MaxBody)
		}
	}
}

func TestTheModuleSetsTheVariablesOfTheFunctions(t *testing.T) {
	variable := regexp.MustCompile(`env:"([A-Z_]+)(,notEmpty)?[^\x60]*?"(?:\s+envDefault:"(\w+)")?`)
	shared := strings.Join(matches(t, `(?s)(.*)`, "../functions/internal/*/*.go"), "")
	// Their files say why the module sets another value than the default.
	// In hours or seconds, the retention is the same.
	others := []string{"webhook STRIPE_TIMEOUT", "order QUEUE_RETENTION", "intake OWNER_CLAIM", "intake CUSTOMER_CLAIM"}
	environments := map[string]map[string]string{}
	for line := range strings.Lines(read(t, module+"tests/environments.txt")) { // compared by Terraform's tests
		function, setting, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, value, _ := strings.Cut(setting, "=")
		if environments[function] == nil {
			environments[function] = map[string]string{}
		}
		environments[function][name] = value
	}
	for function, given := range environments {
		known := map[string]string{"SSL_CERT_DIR": ""} // name and default; crypto/x509 reads this one
		own := strings.Join(matches(t, `(?s)(.*)`, "../functions/"+function+"/*.go"), "")
		for _, match := range variable.FindAllStringSubmatch(own+shared, -1) {
			known[match[1]] = match[3]
			if match[2] != "" && given[match[1]] == "" && strings.Contains(own, match[0]) {
				t.Errorf("%s: %s: not set", function, match[1])
			}
		}
		for name, got := range given {
			want, ok := known[name]
			if !ok {
				t.Errorf("%s: %s: not a variable of the function", function, name)
			}
			if want != "" && got != want && !slices.Contains(others, function+" "+name) {
				t.Errorf("%s: %s: got %q, want the function's default %q", function, name, got, want)
			}
		}
	}
}

func TestTheModulePrintsTheVariablesOfTheOperatorsTool(t *testing.T) {
	printed := read(t, module+"outputs.tf")
	elsewhere := []string{"QUEUE_RETENTION", "STRIPE_API_BASE", "STRIPE_SECRET_KEY"} // secret, or not of a deployment
	for _, name := range matches(t, `env:"([A-Z_]+)"`, "../scripts/orders/cloud/deployment.go") {
		if !slices.Contains(elsewhere, name) && !strings.Contains(printed, "export "+name+"=") {
			t.Errorf("scripts/orders reads %s, which the output operator_environment does not print", name)
		}
	}
}

// matches returns what the first group of a pattern matches in the files of a glob,
// without their tests.
func matches(t *testing.T, pattern, glob string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(folder + glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got %d files: %v", glob, len(files), err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			found = append(found, all(pattern, content(t, file))...)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s: no match of %s", glob, pattern)
	}
	return found
}

// Other tests compare both references with the code.
func TestAlarmsAndDashboardReadMetricsThatTheFunctionsWrite(t *testing.T) {
	known := slices.Concat(
		firstCells(read(t, "../docs/reference/metrics.md")), firstCells(read(t, "../docs/reference/failures.md")),
		[]string{"receipt", "refund"}, // of the dimension Function
	)
	for _, s := range order.Statuses() {
		known = append(known, string(s))
	}
	wrong := sqs.Settings{
		Orders:      sqs.QueueSettings{ARN: "orders", RedriveTarget: "other", MaxReceives: 1},
		DeadLetters: sqs.QueueSettings{ARN: "dead"},
	}
	unread := map[string]bool{}
	for _, m := range wrong.Mismatches(sqs.DefaultPolicy()) {
		known, unread[m.Setting] = append(known, m.Setting), true
	}
	var reads []string
	for _, a := range alarms(t) {
		for _, metric := range a.metrics {
			if source := strings.Fields(metric); source[0] == "app" {
				reads = append(append(reads, source[1]), source[3:]...)
			}
		}
	}
	for _, pattern := range []string{`"orderonce", "(\w+)"`, `(\w+) += \{ dimension = `} {
		reads = append(reads, matches(t, pattern, module+"dashboard.tf")...)
	}
	for _, name := range set(reads) {
		value := name[strings.Index(name, "=")+1:] // of a dimension
		if delete(unread, value); !slices.Contains(known, value) {
			t.Errorf("%s: read by an alarm or the dashboard, but not written by a function", name)
		}
	}
	if len(unread) > 0 {
		t.Errorf("no alarm reads the settings %v", unread)
	}
}

// Each section has a row for each metric of its function, and for each result or reason.
func TestEveryMetricAndResultHasARowInTheReference(t *testing.T) {
	var shared []string
	for _, file := range []string{"report.go", "orders/tasks.go", "refunds/refunds.go"} {
		shared = append(shared, matches(t, `Metric\w+ += "(\w+)"`, "../adapters/sqs/"+file)...)
	}
	hints := matches(t, `\n\tHint\w+ +Followed = "(\w+)"`, "../domain/settle/follow.go")
	reconcile := slices.Concat( // those of a hint that names only the order, and its own
		slices.DeleteFunc(slices.Clone(hints), func(hint string) bool {
			return slices.Contains([]settle.Followed{
				settle.HintUnbound, settle.HintAgrees, settle.HintDisputed, settle.HintDisputeClosed, settle.HintRefunded,
			}, settle.Followed(hint))
		}),
		matches(t, `"(\w+)": +(?:done\.|len\(done\.)`, "../functions/reconcile/run.go"),
		matches(t, `\nconst Hint\w+ Followed = "(\w+)"`, "../domain/settle/reconcile.go"),
	)
	const metric, name = `[mM]eter\.\w+\("(\w+)"`, `\n\t\w+ += "(\w+)" +//`
	for heading, want := range map[string][]string{
		"Metrics": shared,
		"The webhook function": slices.Concat(
			hints, matches(t, `\n\tresult\w+ += "(\w+)"`, "../adapters/stripe/webhook/webhook.go"),
			matches(t, metric, "../functions/webhook/main.go"),
		),
		"The intake function":    append(matches(t, name, "../adapters/httpapi/answer.go"), "Intake"),
		"The reconcile function": append(reconcile, matches(t, metric, "../functions/reconcile/*.go")...),
		"The receipt function": {
			"Receipts", string(receipt.Sent), string(receipt.Delivered), string(receipt.Bounced), string(receipt.Failed),
			string(receipt.Doubtful),
		},
		"The publish function": slices.Concat(
			matches(t, metric, "../functions/publish/run.go"), matches(t, name, "../functions/publish/run.go"),
		),
	} {
		rows := firstCells(section(t, "../docs/reference/metrics.md", "\n## "+heading+"\n", "\n## "))
		got := slices.DeleteFunc(rows, func(cell string) bool { return cell == "Result" || cell == "Reason" })
		if diff := cmp.Diff(got, set(append(want, config.MetricCallLatency))); diff != "" {
			t.Errorf("%s: rows differ (- docs/reference/metrics.md, + the code):\n%s", heading, diff)
		}
	}
}

// firstCells returns the first cell of each row that starts with code, sorted.
func firstCells(rows string) (cells []string) {
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(rows, -1) {
		cells = append(cells, match[1])
	}
	slices.Sort(cells)
	return cells
}

// Stripe sends an endpoint only the events that it lists.
func TestTheGuideSubscribesToTheEventsThatTheWebhookFunctionReads(t *testing.T) {
	event := regexp.MustCompile(`(?:payment_intent|charge|refund)\.[a-z_.]+`)
	code := section(t, "../adapters/stripe/webhook/event.go", "switch e.Type {", "return parsed")
	guide := section(t, "../docs/guides/deploy.md", "events='", "'")
	want, got := event.FindAllString(code, -1), strings.Fields(guide)
	if diff := cmp.Diff(set(got), set(want)); diff != "" || len(want) == 0 {
		t.Errorf("events differ (- docs/guides/deploy.md, + adapters/stripe):\n%s", diff)
	}
}

func TestTheGuideListsThePermissionsOfTheKey(t *testing.T) {
	want := map[string]string{} // by resource
	const named = `"([\w ]+: (?:Read|Write))"`
	all := append(matches(t, named, "../adapters/stripe/*.go"), matches(t, named, "../adapters/stripe/*/*.go")...)
	for _, permission := range all {
		resource, kind, _ := strings.Cut(permission, ": ")
		want[resource] = max(want[resource], kind) // Write includes Read
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

// On call follows these references, so each must lead to a heading or to the row of a
// reason.
func TestAlarmsAndPinsReferToHeadingsAndReasonsThatExist(t *testing.T) {
	text := strings.NewReplacer(
		"# ", "", `\"`, `"`, "${local.runbook}", "docs/guides/operate.md", "${local.failures}", "docs/reference/failures.md",
	).Replace(strings.Join(matches(t, `(?s)(.*)`, module+"*.tf"), " "))
	reference := regexp.MustCompile(`(docs/[a-z/]+\.md), (?:"([^"]+)"|([a-z_]+))`)
	references := reference.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1)
	if len(references) < 45 {
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

// A rotation writes the secret and publishes the function in one apply. If the secret
// were written second, new execution environments would read the old one.
func TestTheFunctionsArePublishedAfterTheirSecretsAreWritten(t *testing.T) {
	for name, secret := range map[string]string{
		"stripe_key": "stripe", "stripe_read_key": "stripe_read", "stripe_refund_key": "stripe_refund",
		"webhook_secret_version": "webhook",
	} {
		value := matches(t, `(?ms)^  `+name+` += (.*?)\n(?:  \w|  \}|\})`, module+"secrets.tf")
		if version := "aws_secretsmanager_secret_version." + secret; len(value) != 1 || !strings.Contains(value[0], version) {
			t.Errorf("local.%s, which descriptions of functions have: got %q, want %s in it", name, value, version)
		}
	}
}

// A plan that deletes something must delete it after what names it, and after what may
// refuse to be deleted. The roles must be allowed to use a new key before messages, rows
// and secrets are encrypted with it. Terraform's tests apply nothing at AWS, so they see
// no order.
func TestResourcesAreCreatedAndDeletedInAnOrderThatAWSAccepts(t *testing.T) {
	if !strings.Contains(resource(t, "aws_apigatewayv2_authorizer.intake"), "    create_before_destroy = true\n") {
		t.Error("authorizer: deleted before the routes stop naming it, which API Gateway refuses")
	}
	for address, after := range map[string][]string{
		"aws_sqs_queue.queues":       {"aws_iam_role_policy.keys"},
		"aws_sqs_queue.dead_letters": {"aws_iam_role_policy.keys"},
		"aws_dynamodb_table.orders":  {"aws_iam_role_policy.keys"},
		"aws_dynamodb_table.stock":   {"aws_iam_role_policy.keys"},
		// If receipts are turned off, the protected table stops the apply before the
		// queues lose their messages.
		"aws_dynamodb_table.receipts": {
			"aws_iam_role_policy.keys", "aws_sqs_queue.queues", "aws_sqs_queue.dead_letters",
		},
		"aws_secretsmanager_secret.stripe":       {"aws_iam_role_policy.keys"},
		"aws_secretsmanager_secret.stripe_read":  {"aws_iam_role_policy.keys"},
		"aws_secretsmanager_secret.webhook":      {"aws_iam_role_policy.keys"},
		"aws_lambda_event_source_mapping.queues": {"aws_iam_role_policy.functions"},
	} {
		list := strings.Join(all(`depends_on = \[(.*)\]\n`, resource(t, address)), "")
		if diff := cmp.Diff(strings.Split(list, ", "), after); diff != "" {
			t.Errorf("%s: depends_on (-got +want):\n%s", address, diff)
		}
	}
}

// The oldest release that versions.tf accepts must pass every test, and a later one too.
func TestTheOldestTerraformRunsInCI(t *testing.T) {
	oldest := matches(t, `required_version = ">= ([\d.]+)"`, module+"versions.tf")[0]
	tested := matches(t, `terraform_version: ([\d.]+)`, "../.github/workflows/ci.yml")
	if len(tested) != 2 || !slices.ContainsFunc(tested, func(v string) bool { return strings.HasPrefix(v, oldest+".") }) {
		t.Errorf("ci.yml: runs Terraform %q, want %s and a later release", tested, oldest)
	}
}

// The engine of the tests checks no permission, so a call that no role allows fails
// only in AWS.
func TestTheRolesAllowWhatTheFunctionsDoWithTheirTables(t *testing.T) {
	users := map[string][]string{ // action, and what in a function's code needs it
		"dynamodb:GetItem":    {"refund.Refresher{", "refund.Processor{", "receipttable.New("},
		"dynamodb:Query":      {"order.Processor{", "settle.Follower{", "order.Cancellation{", "registrationtable.Store{"},
		"dynamodb:UpdateItem": {"order.Processor{", "refund.Processor{", "settle.Follower{", "registrationtable.Store{"},
		"dynamodb:PutItem":    {"dynamodb.New(", "receipttable.New("}, // part of TransactWriteItems
		"dynamodb:Scan":       {".Scan("},                             // of scripts/orders alone
	}
	const calls = `(?:client\.|DB\.|(?:dynamodb|sdk)\.New)(\w+?)(?:Paginator)?\(`
	const table = "../adapters/dynamodb/"
	for _, call := range append(matches(t, calls, table+"*.go"), matches(t, calls, table+"re*/*.go")...) {
		if call != "TransactWriteItems" && call != "FromConfig" && call != "Client" && users["dynamodb:"+call] == nil {
			t.Errorf("adapters/dynamodb calls %s: name here what needs it", call)
		}
	}
	for policy, allows := range statements(t) {
		function, is := strings.CutPrefix(policy, "role ")
		if !is {
			continue
		}
		code := strings.Join(matches(t, `(?s)(.*)`, "../functions/"+function+"/*.go"), "")
		allowed := actions(allows)
		for action, all := range users {
			uses := func(user string) bool { return strings.Contains(code, user) }
			got, want := slices.Contains(allowed, action), slices.ContainsFunc(all, uses)
			if got != want {
				t.Errorf("%s: %s allowed: got %t, want %t as for %s", function, action, got, want, all)
			}
		}
	}
}

// A write with another attribute is denied, so orders by HTTP would fail in AWS alone.
func TestTheIntakeFunctionMayWriteTheAttributesOfARegistration(t *testing.T) {
	of := statements(t)["role intake"]
	for sid, want := range map[string][]string{
		"RegisterOrders": set(append(registrationAttributes(t, "func encodeRegistration(", `"(\w+)": `),
			registrationAttributes(t, "func registrationFields(", `Field\(f, "(\w+)"`)...)),
		"MarkSentOrders": registrationAttributes(t, ") MarkSent(", `"(\w+)": |(openShard|dueAt)|attribute_exists\((\w+)\)`),
	} {
		_, attributes, _ := strings.Cut(of[sid].condition, ":[")
		got := set(regexp.MustCompile(`\w+`).FindAllString(attributes, -1))
		if diff := cmp.Diff(got, want); diff != "" || len(want) < 4 {
			t.Errorf("%s: attributes differ (- infra/terraform, + adapters/dynamodb):\n%s", sid, diff)
		}
	}
}

// registrationAttributes returns what the groups of a pattern match in a function of
// package registrations.
func registrationAttributes(t *testing.T, function, pattern string) (names []string) {
	t.Helper()
	code := section(t, "../adapters/dynamodb/registrations/registrations.go", function, "\n}\n")
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(code, -1) {
		names = append(names, strings.Join(match[1:], ""))
	}
	return set(names)
}

// EventBridge drops an event that no rule matches, so a wrong name sends no receipt.
func TestTheRuleOfReceiptsMatchesEventsThatExist(t *testing.T) {
	document := read(t, "../docs/reference/events.md")
	names := matches(t, `"detail-type" = \["([^\]]+)"\]`, module+"receipt.tf")
	for name := range strings.SplitSeq(names[0], `", "`) {
		if !strings.Contains(document, "\n| `"+name+"` |") {
			t.Errorf("events.md: no row %q, which a rule in receipt.tf matches", name)
		}
	}
}

func TestEveryPolicyStatementHasARowInTheReference(t *testing.T) {
	code := []string{"CallIntake", "WriteTraces"} // of callers, and with tracing
	for _, of := range statements(t) {
		code = slices.AppendSeq(code, maps.Keys(of))
	}
	document := firstCells(read(t, "../docs/reference/iam.md"))
	if diff := cmp.Diff(document, set(code)); diff != "" {
		t.Errorf("statements differ (- docs/reference/iam.md, + infra/terraform):\n%s", diff)
	}
}

func TestTheModuleAcceptsTheScopesThatTheFunctionAccepts(t *testing.T) {
	rule := regexp.MustCompile(matches(t, `regex\("([^"]+)", var\.scope\)`, module+"variables.tf")[0])
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

func read(t *testing.T, path string) string {
	t.Helper()
	return content(t, folder+path)
}

// section returns what a file has between two texts.
func section(t *testing.T, path, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, path), from)
	text, _, _ := strings.Cut(rest, to)
	if !found {
		t.Fatalf("%s: no %q", path, from)
	}
	return text
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
