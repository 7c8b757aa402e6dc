package main

import (
	"fmt"
	"slices"
	"strings"
)

// mistake is a change to the module that must not go unnoticed.
type mistake struct {
	test         string // the file in tests/ that is for it
	name         string
	file         string
	right, wrong string
	run          string // the run that has to fail
}

func (m mistake) tests() string { return "tests/" + m.test + ".tftest.hcl" }

// plant is the file with the mistake in it.
func (m mistake) plant(file string) (string, error) {
	if n := strings.Count(file, m.right); n != 1 {
		return "", fmt.Errorf("plant %q: %q stands %d times in %s, want once", m.name, m.right, n, m.file)
	}
	return strings.Replace(file, m.right, m.wrong, 1), nil
}

// deployed is the name of a run that makes the state on which the others plan.
const deployed = "deployed"

// alone is the file of tests with nothing but the run that is for the mistake, and the one that it builds upon: the others
// would only take time.
func (m mistake) alone(tests string) (string, error) {
	runs := strings.Split(tests, "\nrun ")
	alone := runs[:1:1]
	for _, run := range runs[1:] {
		if strings.HasPrefix(run, `"`+deployed+`"`) {
			alone = append(alone, run)
		}
		if strings.HasPrefix(run, `"`+m.run+`"`) {
			return strings.Join(append(alone, run), "\nrun "), nil
		}
	}
	return "", fmt.Errorf("plant %q: %s has no run %q", m.name, m.tests(), m.run)
}

// mistakes are at least one for each property that the tests are for.
func mistakes() []mistake {
	return slices.Concat(
		inQueues(), inFunctions(), inReleases(), inTable(), inSecrets(), inPermissions(), inQueuePolicies(), inVariables(), inScope(),
		inPins(), inAlarms(),
	)
}

func inQueues() []mistake {
	return []mistake{
		{
			"queue", "visibility of five function time-outs", "queue.tf",
			"var.visibility_timeout\n  message", "5 * var.function_timeout\n  message",
			"a_slow_batch_is_not_delivered_twice",
		},
		{
			"queue", "no precondition on visibility", "queue.tf",
			"var.visibility_timeout >= 6 * var.function_timeout", "var.visibility_timeout > 0",
			"less_visibility_is_refused",
		},
		{
			"queue", "maxReceiveCount 50", "queue.tf",
			"maxReceiveCount     = 1000", "maxReceiveCount     = 50",
			"the_queue_parks_only_what_the_code_cannot",
		},
		{
			"queue", "any queue may use the dead-letter queue", "queue.tf",
			`"byQueue"`, `"allowAll"`,
			"the_queue_parks_only_what_the_code_cannot",
		},
		{
			"queue", "dead letters kept as long as orders", "queue.tf",
			"14 * 24", "7 * 24",
			"nothing_is_lost_before_somebody_looked",
		},
		{
			"queue", "a full message cannot be parked", "queue.tf",
			"1024 * 1024", "512 * 1024",
			"whatever_is_accepted_can_be_parked",
		},
		{
			"queue", "short polling", "queue.tf",
			"receive_wait_time_seconds = 20", "receive_wait_time_seconds = 0",
			"receives_wait_and_messages_are_encrypted",
		},
		{
			"queue", "a FIFO queue with a standard dead-letter queue", "queue.tf",
			"orders-dead${local.queue_suffix}", "orders-dead",
			"the_fifo_variant_plans",
		},
		{
			"queue", "a table without the customer's key", "table.tf",
			"kms_key_arn = var.kms_key_arn", "kms_key_arn = null",
			"a_key_of_the_customer_encrypts_everything",
		},
	}
}

func inFunctions() []mistake {
	return []mistake{
		{
			"function", "no partial batch responses", "functions.tf",
			`["ReportBatchItemFailures"]`, "[]",
			"only_what_failed_comes_back",
		},
		{
			"function", "a filter on the queue", "functions.tf",
			"  metrics_config {",
			"  filter_criteria {\n    filter {\n      pattern = \"{}\"\n    }\n  }\n\n  metrics_config {",
			"no_message_is_deleted_unseen",
		},
		{
			"function", "a mapping that cannot be stopped", "functions.tf",
			"enabled                 = var.processing", "enabled                 = true",
			"processing_can_be_stopped",
		},
		{
			"function", "a mapping past the alias", "functions.tf",
			`aws_lambda_alias.live["order"].arn`, `aws_lambda_function.functions["order"].arn`,
			"the_mapping_calls_the_alias",
		},
		{
			"function", "orders of a batch one after the other", "functions.tf",
			"tostring(var.batch_size)", `"1"`,
			"batches_are_ten_and_few",
		},
		{
			"function", "reserved concurrency below the mapping's", "functions.tf",
			"var.reserved_concurrency >= local.batches_at_once", "var.reserved_concurrency > 0",
			"reserved_concurrency_below_the_mapping_s_is_refused",
		},
		{
			"function", "pollers and a maximum concurrency", "functions.tf",
			"var.provisioned_pollers == null ? [var.maximum_concurrency] : []", "[var.maximum_concurrency]",
			"provisioned_pollers_replace_the_maximum_concurrency",
		},
		{
			"function", "reserved concurrency below ten a poller", "functions.tf",
			"10 * var.provisioned_pollers.maximum", "var.provisioned_pollers.maximum",
			"reserved_concurrency_below_ten_a_poller_is_refused",
		},
	}
}

func inReleases() []mistake {
	return []mistake{
		{
			"function", "a role without its boundary", "iam.tf",
			"permissions_boundary = var.permissions_boundary", "permissions_boundary = null",
			"the_role_may_be_bounded",
		},
		{
			"function", "a zip that is never deployed again", "functions.tf",
			"filebase64sha256(local.zips[each.key]) : null", "null : null",
			"the_function_is_built_for_this_runtime",
		},
		{
			"function", "a missing zip goes unsaid", "functions.tf",
			"condition     = fileexists(local.zips[each.key])", "condition     = each.key != \"\"",
			"a_missing_zip_is_told_before_anything_is_made",
		},
		{
			"function", "a log level that drops the metrics", "functions.tf",
			`application_log_level = "INFO"`, `application_log_level = "WARN"`,
			"logs_are_json_and_end",
		},
		{
			"function", "a variable that the function does not get", "functions.tf",
			"      QUEUE_RETENTION ", "      RETENTION ",
			"the_environment_is_complete",
		},
		{
			"scope", "a name without the environment", "secrets.tf",
			`"${local.prefix}/stripe-secret-key"`, `"${var.name}/stripe-secret-key"`,
			"environments_share_no_name",
		},
	}
}

func inTable() []mistake {
	return []mistake{
		{
			"table", "no deletion protection", "table.tf",
			"var.deletion_protection", "false",
			"the_table_cannot_be_deleted_by_mistake",
		},
		{
			"table", "no point-in-time recovery", "table.tf",
			"point_in_time_recovery {\n    enabled = true", "point_in_time_recovery {\n    enabled = false",
			"the_table_can_be_restored",
		},
		{
			"table", "a table that is replaced to cool down", "table.tf",
			"ignore_changes = [warm_throughput]", "ignore_changes = []",
			"a_table_that_has_warmed_up_is_left_alone",
		},
		{
			"pins", "an empty table in the place of the orders", "pins.tf",
			"self.input == local.orders_table", "self.input != null",
			"a_table_under_another_name_is_refused",
		},
		{
			"table", "a time to live on orders", "table.tf",
			`attribute_name = "expiresAt"`, `attribute_name = "updatedAt"`,
			"only_history_expires",
		},
		{
			"table", "a stream of keys", "table.tf",
			`"NEW_IMAGE"`, `"KEYS_ONLY"`,
			"changes_leave_by_the_stream",
		},
		{
			"table", "an index of everything", "table.tf",
			`projection_type = "KEYS_ONLY"`, `projection_type = "ALL"`,
			"waiting_orders_are_in_the_index",
		},
	}
}

func inSecrets() []mistake {
	return []mistake{
		{
			"secrets", "a key that state keeps", "secrets.tf",
			"secret_string_wo         = var.stripe_secret_key == null ? \"\" : var.stripe_secret_key\n" +
				"  secret_string_wo_version = var.stripe_secret_version",
			`secret_string = "sk_test_canary"`,
			"no_attribute_holds_the_key",
		},
		{
			"secrets", "a key in the environment", "functions.tf",
			"STRIPE_SECRET_ARN     = aws_secretsmanager_secret.stripe.arn",
			"STRIPE_SECRET_KEY     = var.stripe_secret_key",
			"no_attribute_holds_the_key",
		},
		{
			"secrets", "a key in an output", "outputs.tf",
			"aws_secretsmanager_secret.stripe.arn", `"sk_test_canary"`,
			"no_attribute_holds_the_key",
		},
		{
			"secrets", "a name that stays taken", "secrets.tf",
			"var.secret_recovery_days", "7",
			"a_secret_may_be_deleted_at_once",
		},
		{
			"secrets", "a rotation that does nothing", "secrets.tf",
			"var.stripe_secret_version", "1",
			"rotation_raises_the_version",
		},
	}
}

func inPermissions() []mistake {
	return []mistake{
		{
			"iam", "any DynamoDB action", "iam.tf",
			`["dynamodb:UpdateItem", "dynamodb:PutItem"]`, `"dynamodb:*"`,
			"the_role_names_exact_actions_and_arns",
		},
		{
			"iam", "one action more", "iam.tf",
			`["dynamodb:UpdateItem", "dynamodb:PutItem"]`,
			`["dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:DeleteItem"]`,
			"the_role_names_exact_actions_and_arns",
		},
		{
			"iam", "any secret", "iam.tf",
			"Resource = aws_secretsmanager_secret.stripe.arn", `Resource = "*"`,
			"the_role_names_exact_actions_and_arns",
		},
		{
			"iam", "any use of the key", "iam.tf",
			`["kms:Decrypt", "kms:GenerateDataKey"]`, `["kms:*"]`,
			"no_policy_has_a_wildcard",
		},
		{
			"iam", "no permission for the previous key", "iam.tf",
			", tolist(var.previous_kms_key_arns))", ")",
			"a_previous_key_stays_in_the_role",
		},
		{
			"iam", "a key that is used for anything", "iam.tf",
			`{ "kms:ViaService" = local.key_services }`, `{ "kms:ViaService" = [] }`,
			"no_policy_has_a_wildcard",
		},
		{
			"iam", "any action on any traced thing", "iam.tf",
			`["xray:PutTraceSegments", "xray:PutTelemetryRecords"]`,
			`["xray:PutTraceSegments", "xray:GetTraceSummaries"]`,
			"tracing_adds_the_one_statement_without_a_resource",
		},
		{
			"iam", "a role for EC2", "iam.tf",
			"lambda.amazonaws.com", "ec2.amazonaws.com",
			"only_lambda_takes_the_role",
		},
	}
}

func inQueuePolicies() []mistake {
	return []mistake{
		{
			"iam", "messages without TLS", "iam.tf",
			`Resource  = aws_sqs_queue.dead_letters.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }`, `Resource  = aws_sqs_queue.dead_letters.arn
        Condition = { Bool = { "aws:SecureTransport" = "true" } }`,
			"queues_speak_tls_only",
		},
		{
			"iam", "everybody sends orders", "iam.tf",
			"Principal = { AWS = sort(var.producer_arns) }", `Principal = { AWS = "*" }`,
			"no_policy_has_a_wildcard",
		},
		{
			"iam", "the account sends orders", "iam.tf",
			`ArnNotEquals = { "aws:PrincipalArn" = sort(var.producer_arns) }`,
			`ArnNotEquals = { "aws:PrincipalArn" = local.account }`,
			"only_named_producers_send_orders",
		},
		{
			"iam", "any rule sends orders", "iam.tf",
			`ArnEquals    = { "aws:SourceArn" = sort(var.producer_rule_arns) }`,
			`ArnLike      = { "aws:SourceArn" = sort(var.producer_rule_arns) }, ArnEquals = { "aws:SourceArn" = ["any"] }`,
			"named_rules_and_topics_send_orders",
		},
		{
			"iam", "topics may not send", "iam.tf",
			`"aws:SourceArn" = sort(var.producer_topic_arns)`, `"aws:SourceArn" = sort(var.producer_rule_arns)`,
			"named_rules_and_topics_send_orders",
		},
		{
			"iam", "a denial that keeps services out", "iam.tf",
			`"aws:PrincipalIsAWSService" = "false"`, `"aws:PrincipalIsAWSService" = "true"`,
			"no_denial_keeps_a_service_out",
		},
		{
			"iam", "everybody parks", "iam.tf",
			`"aws:PrincipalArn" = aws_iam_role.functions["order"].arn`, `"aws:PrincipalArn" = local.account`,
			"only_the_function_parks",
		},
	}
}

func inVariables() []mistake {
	return []mistake{
		{
			"variables", "a name that no key may carry", "variables.tf",
			`"^[a-z][a-z0-9-]*$"`, `"^.*$"`,
			"a_name_with_capitals_is_refused",
		},
		{
			"variables", "a scope that the function refuses", "variables.tf",
			`"^[a-z][a-z0-9-]{0,31}$"`, `"^[a-z][a-z0-9-]*$"`,
			"a_scope_of_33_characters_is_refused",
		},
		{
			"variables", "a name without room for the hash", "variables.tf",
			"var.scope == null ? 25 : 32", "32",
			"a_name_without_room_for_the_hash_is_refused",
		},
		{
			"variables", "any text for a key", "variables.tf",
			`"^(sk|rk)_(test|live)_[A-Za-z0-9_]+$"`, `"^.+$"`,
			"a_publishable_key_is_refused",
		},
		{
			"variables", "one batch at a time", "variables.tf",
			"var.maximum_concurrency >= 2", "var.maximum_concurrency >= 1",
			"one_batch_at_a_time_is_refused",
		},
		{
			"variables", "a producer with a wildcard", "variables.tf",
			"[A-Za-z0-9+=,.@_/-]+$\", arn", "[A-Za-z0-9+=,.@_/*-]+$\", arn",
			"a_producer_with_a_wildcard_is_refused",
		},
	}
}

func inScope() []mistake {
	return []mistake{
		{
			"scope", "one scope in all accounts", "main.tf",
			`"${data.aws_caller_identity.current.account_id}/${data.aws_region.current.region}"`,
			"data.aws_region.current.region",
			"another_account_has_another_scope",
		},
		{
			"scope", "one scope in all regions", "main.tf",
			`"${data.aws_caller_identity.current.account_id}/${data.aws_region.current.region}"`,
			"data.aws_caller_identity.current.account_id",
			"another_region_has_another_scope",
		},
		{
			"scope", "a scope that cannot be kept", "main.tf",
			`coalesce(var.scope, "${local.prefix}-${local.place}")`, `"${local.prefix}-${local.place}"`,
			"a_given_scope_is_used_as_it_is",
		},
	}
}

func inPins() []mistake {
	return []mistake{
		{
			"pins", "any environment on any state", "pins.tf",
			"self.input == local.deployment", "self.input != null",
			"another_environment_on_the_same_state_is_refused",
		},
		{
			"pins", "a pin that moves with the variables", "pins.tf",
			"input = local.deployment\n\n  lifecycle {\n    ignore_changes = [input]\n", "input = local.deployment\n\n  lifecycle {\n",
			"another_environment_on_the_same_state_is_refused",
		},
		{
			"pins", "resources under another name on the same state", "main.tf",
			"    prefix  = local.prefix\n", "",
			"another_environment_on_the_same_state_is_refused",
		},
		{
			"pins", "another scope for orders that are under way", "main.tf",
			"    scope   = local.scope\n", "",
			"another_scope_on_the_same_state_is_refused",
		},
		{
			"pins", "another account on the same state", "main.tf",
			"    account = data.aws_caller_identity.current.account_id\n", "",
			"another_account_on_the_same_state_is_refused",
		},
		{
			"pins", "another region on the same state", "main.tf",
			"    region  = data.aws_region.current.region\n", "",
			"another_region_on_the_same_state_is_refused",
		},
		{
			"pins", "a key that is lost with the messages under it", "pins.tf",
			"length(setsubtract(toset(self.input), toset(local.kms_keys))) == 0", "self.input != null",
			"a_key_that_is_taken_away_is_refused",
		},
		{
			"pins", "a secret that stays under the previous key", "secrets.tf",
			`coalesce(var.kms_key_arn, "alias/aws/secretsmanager")`, "var.kms_key_arn",
			"a_key_that_is_taken_away_and_kept_plans",
		},
		{
			"pins", "queues that are replaced with their messages", "pins.tf",
			"self.input == local.queue_type", "self.input != null",
			"another_type_of_queue_is_refused",
		},
	}
}

func inAlarms() []mistake {
	return []mistake{
		{
			"alarms", "an alarm that nobody hears", "alarms.tf",
			"alarm_actions       = local.topics", "alarm_actions       = []",
			"every_alarm_is_heard_and_silence_is_no_alarm",
		},
		{
			"alarms", "an alarm that says stop and not how", "alarms.tf",
			"--no-enabled", "--enabled",
			"the_alarms_that_say_stop_say_how",
		},
		{
			"alarms", "alarms at night, when nobody orders", "alarms.tf",
			`"notBreaching"`, `"breaching"`,
			"every_alarm_is_heard_and_silence_is_no_alarm",
		},
		{
			"alarms", "no alarm on mismatches", "alarms.tf",
			"    mismatch = {", "    mis-match = {",
			"every_trouble_has_an_alarm",
		},
		{
			"alarms", "orders that are retried for days in silence", "alarms.tf",
			`name = "WaitingAge", stat = "Maximum"`, `name = "OrderAge", stat = "Maximum"`,
			"an_outage_is_alarmed_and_a_passing_throttle_is_not",
		},
		{
			"alarms", "an outage of the table in silence", "alarms.tf",
			`local.ours_by_reason["store_unavailable"]`, `local.ours_by_reason["misconfigured"]`,
			"an_outage_is_alarmed_and_a_passing_throttle_is_not",
		},
		{
			"alarms", "no alarm on a queue's settings", "alarms.tf",
			`"queue-${replace(setting, "_", "-")}"`, `"${replace(setting, "_", "-")}"`,
			"every_trouble_has_an_alarm",
		},
		{
			"alarms", "an alarm that CloudWatch refuses", "alarms.tf",
			`"IF(received >= 50,`, `"SEARCH('', 'Sum', 300) + IF(received >= 50,`,
			"every_alarm_looks_at_one_thing_by_name",
		},
		{
			"alarms", "a dashboard that does not ask whether once", "dashboard.tf",
			`"Once?"`, `"Twice?"`,
			"the_dashboard_answers_three_questions",
		},
	}
}
