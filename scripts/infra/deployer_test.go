package infra_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// providerCalls returns the actions that the provider calls to read, create, update and
// delete what has a type (internal/service of hashicorp/aws).
func providerCalls() map[string]string {
	return map[string]string{
		"aws_apigatewayv2_api": "apigateway: DELETE GET PATCH POST PUT TagResource UntagResource; " +
			"iam: CreateServiceLinkedRole", // by the first API of an account
		"aws_apigatewayv2_authorizer":  "apigateway: DELETE GET PATCH POST",
		"aws_apigatewayv2_integration": "apigateway: DELETE GET PATCH POST",
		"aws_apigatewayv2_route":       "apigateway: DELETE GET PATCH POST",
		"aws_apigatewayv2_stage": "apigateway: DELETE GET PATCH POST TagResource UntagResource; " +
			"logs: CreateLogDelivery DeleteLogDelivery DescribeLogGroups DescribeResourcePolicies GetLogDelivery " +
			"ListLogDeliveries PutResourcePolicy UpdateLogDelivery",
		"aws_caller_identity":          "", // always allowed
		"aws_cloudwatch_dashboard":     "cloudwatch: DeleteDashboards GetDashboard PutDashboard",
		"aws_cloudwatch_event_archive": "events: CreateArchive DeleteArchive DescribeArchive UpdateArchive",
		"aws_cloudwatch_event_bus": "events: CreateEventBus DeleteEventBus DescribeEventBus " +
			"ListTagsForResource TagResource UntagResource UpdateEventBus",
		"aws_cloudwatch_event_rule": "events: DeleteRule DescribeRule ListTagsForResource PutRule " +
			"TagResource UntagResource",
		"aws_cloudwatch_event_target": "events: ListTargetsByRule PutTargets RemoveTargets",
		"aws_cloudwatch_log_group": "logs: CreateLogGroup DeleteLogGroup DeleteRetentionPolicy " +
			"DescribeLogGroups ListTagsForResource PutRetentionPolicy TagResource UntagResource",
		"aws_cloudwatch_metric_alarm": "cloudwatch: DeleteAlarms DescribeAlarms ListTagsForResource " +
			"PutMetricAlarm TagResource UntagResource",
		"aws_dynamodb_table": "dynamodb: CreateTable DeleteTable DescribeContinuousBackups DescribeTable " +
			"DescribeTimeToLive ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable " +
			"UpdateTimeToLive",
		"aws_iam_policy": "iam: CreatePolicy CreatePolicyVersion DeletePolicy DeletePolicyVersion GetPolicy " +
			"GetPolicyVersion ListPolicyVersions TagPolicy UntagPolicy",
		"aws_iam_role": "iam: CreateRole DeleteRole DeleteRolePermissionsBoundary GetRole " +
			"ListAttachedRolePolicies ListInstanceProfilesForRole ListRolePolicies PutRolePermissionsBoundary " +
			"TagRole UntagRole UpdateAssumeRolePolicy UpdateRole",
		"aws_iam_role_policy": "iam: DeleteRolePolicy GetRolePolicy PutRolePolicy",
		"aws_lambda_alias":    "lambda: CreateAlias DeleteAlias GetAlias UpdateAlias",
		"aws_lambda_event_source_mapping": "lambda: CreateEventSourceMapping DeleteEventSourceMapping " +
			"GetEventSourceMapping ListTags TagResource UntagResource UpdateEventSourceMapping",
		"aws_lambda_function": "lambda: CreateFunction DeleteFunction DeleteFunctionConcurrency GetFunction " +
			"GetFunctionCodeSigningConfig GetFunctionConfiguration ListTags ListVersionsByFunction PublishVersion " +
			"PutFunctionConcurrency TagResource UntagResource UpdateFunctionCode UpdateFunctionConfiguration; " +
			"iam: PassRole",
		"aws_lambda_function_event_invoke_config": "lambda: DeleteFunctionEventInvokeConfig " +
			"GetFunctionEventInvokeConfig PutFunctionEventInvokeConfig",
		"aws_lambda_functions":  "lambda: ListFunctions",
		"aws_lambda_permission": "lambda: AddPermission GetPolicy RemovePermission",
		"aws_partition":         "",
		"aws_region":            "",
		"aws_scheduler_schedule": "scheduler: CreateSchedule DeleteSchedule GetSchedule UpdateSchedule; " +
			"iam: PassRole",
		"aws_secretsmanager_secret": "secretsmanager: CreateSecret DeleteSecret DescribeSecret " +
			"GetResourcePolicy TagResource UntagResource UpdateSecret",
		"aws_secretsmanager_secret_version": "secretsmanager: GetSecretValue PutSecretValue",
		"aws_sqs_queue": "sqs: CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags " +
			"SetQueueAttributes TagQueue UntagQueue",
		"aws_sqs_queue_policy":               "sqs: GetQueueAttributes SetQueueAttributes",
		"aws_sqs_queue_redrive_allow_policy": "sqs: GetQueueAttributes SetQueueAttributes",
		"terraform_data":                     "",
	}
}

func TestTheDeployersPolicyAllowsWhatTheModuleNeedsAndNoMore(t *testing.T) {
	deployment := providerCalls()
	var want []string
	types := set(matches(t, `(?m)^(?:resource|data) "(\w+)"`, "terraform/*.tf"))
	for _, name := range types {
		actions, ok := deployment[name]
		if !ok {
			t.Errorf("%s: no actions listed: add them here and to deployer-policy.json", name)
		}
		want = append(want, expand(actions)...)
	}
	for name := range deployment {
		if !slices.Contains(types, name) {
			t.Errorf("%s: not a type of the module", name)
		}
	}
	if diff := cmp.Diff(set(want), set(deployerActions(t))); diff != "" {
		t.Errorf("actions differ (- the types of the module, + deployer-policy.json):\n%s", diff)
	}
}

// expand turns "sqs: CreateQueue DeleteQueue; iam: PassRole" into actions.
func expand(actions string) (all []string) {
	for part := range strings.SplitSeq(actions, "; ") {
		service, operations, _ := strings.Cut(part, ": ")
		for operation := range strings.FieldsSeq(operations) {
			all = append(all, service+":"+operation)
		}
	}
	return all
}

// deployerActions returns the actions of the policy. Some statements are about resources
// whose ARNs do not contain a name of the module.
func deployerActions(t *testing.T) (actions []string) {
	t.Helper()
	everywhere := []string{"AccessLogs", "Apis", "ApiServiceRole", "MappingTags", "Mappings", "ReadAlarms"}
	ours := regexp.MustCompile(`[:/]orderonce-\*$`)
	text := read(t, "deployer-policy.json")
	if size := len(strings.Join(strings.Fields(text), "")); size > 6144 {
		t.Errorf("got %d characters, want at most 6,144 (IAM user guide, quotas)", size)
	}
	var policy struct {
		Statement []struct {
			Sid              string
			Action, Resource any
		}
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	for _, s := range policy.Statement {
		for _, resource := range list(s.Resource) {
			if !slices.Contains(everywhere, s.Sid) && !ours.MatchString(resource) {
				t.Errorf("%s: %s: want the prefix of the module's names", s.Sid, resource)
			}
		}
		actions = append(actions, list(s.Action)...)
	}
	return actions
}

// list returns the texts of a JSON value that is one text or several.
func list(value any) (texts []string) {
	if one, ok := value.(string); ok {
		return []string{one}
	}
	for _, v := range value.([]any) {
		texts = append(texts, v.(string))
	}
	return texts
}
