# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = {
      arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
      url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
    }
  }

  mock_resource "aws_dynamodb_table" {
    defaults = {
      arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
      stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = {
      id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
  }

  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live" }
  }

  mock_resource "aws_lambda_event_source_mapping" {
    defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
  }
}

variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
  alarm_topic_arn   = "arn:aws:sns:eu-west-1:123456789012:ops"
}

run "every_trouble_has_an_alarm" {
  command = plan

  assert {
    condition = toset(keys(aws_cloudwatch_metric_alarm.alarms)) == toset([
      "dead-letters", "dead-letters-old", "orders-waiting", "orders-open-long", "errors", "throttles", "duration", "duplicates",
      "unknown-outcomes", "declines", "mismatch", "key-reused", "misconfigured", "orders-retrying", "store-unavailable", "provider-unavailable",
      "queue-retention", "queue-max-receives", "queue-redrive-target", "queue-dead-letter-retention",
    ])
    error_message = "An alarm is missing or new."
  }
}

run "alarms_cost_what_deploy_md_says" {
  command = plan

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.alarms) == 20
    error_message = "There are ${length(aws_cloudwatch_metric_alarm.alarms)} alarms: count again in docs/guides/deploy.md."
  }

  assert {
    condition     = length(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms : [for query in alarm.metric_query : query.metric]])) == 24
    error_message = "The alarms' metrics are counted in docs/guides/deploy.md, and are others now."
  }
}

run "every_alarm_is_heard_and_silence_is_no_alarm" {
  command = plan

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : alarm.alarm_actions == toset([var.alarm_topic_arn])])
    error_message = "An alarm tells nobody."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : alarm.treat_missing_data == "notBreaching"])
    error_message = "An idle queue would raise an alarm."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : alarm.datapoints_to_alarm <= alarm.evaluation_periods])
    error_message = "More periods have to be bad than are looked at."
  }
}

run "every_alarm_looks_at_one_thing_by_name" {
  command = plan

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length([for query in alarm.metric_query : query.id if query.return_data]) == 1
    ])
    error_message = "An alarm compares exactly one result."
  }

  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : !strcontains(coalesce(query.expression, "-"), "SEARCH")]
    ]))
    error_message = "CloudWatch refuses SEARCH in an alarm."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : length(alarm.metric_query) <= 10])
    error_message = "CloudWatch refuses an alarm over more than ten metrics."
  }
}

run "any_dead_letter_any_mismatch_any_refused_key" {
  command = plan

  assert {
    condition     = alltrue([for name in ["dead-letters", "mismatch", "key-reused", "misconfigured", "errors", "queue-retention", "queue-max-receives", "queue-redrive-target", "queue-dead-letter-retention"] : aws_cloudwatch_metric_alarm.alarms[name].threshold == 0])
    error_message = "One is too many."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["dead-letters-old"].threshold == 604800
    error_message = "A dead letter of seven days has to be told, before it is deleted at fourteen."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["duration"].threshold == 24000
    error_message = "An alarm has to come before the function's time-out."
  }
}

run "an_outage_is_alarmed_and_a_passing_throttle_is_not" {
  command = plan

  assert {
    condition = { for name in ["store-unavailable", "provider-unavailable"] : name => flatten([
      for query in aws_cloudwatch_metric_alarm.alarms[name].metric_query : [
        for metric in query.metric : "${metric.metric_name} ${metric.dimensions.Reason} ${metric.stat}" if can(metric.dimensions.Reason)
      ]
      ]) } == {
      store-unavailable    = ["Redelivered store_unavailable Sum"]
      provider-unavailable = ["Redelivered provider_unavailable Sum"]
    }
    error_message = "An outage of DynamoDB or Stripe raises no alarm."
  }

  assert {
    condition = alltrue([for name in ["store-unavailable", "provider-unavailable"] :
      aws_cloudwatch_metric_alarm.alarms[name].datapoints_to_alarm == 3 && aws_cloudwatch_metric_alarm.alarms[name].evaluation_periods == 4
    ])
    error_message = "Want three bad periods of four: a passing throttle is no outage."
  }

  assert {
    condition = aws_cloudwatch_metric_alarm.alarms["orders-retrying"].threshold == 1800000 && flatten([
      for query in aws_cloudwatch_metric_alarm.alarms["orders-retrying"].metric_query : [for metric in query.metric : "${metric.metric_name} ${metric.stat}"]
    ]) == ["WaitingAge Maximum"]
    error_message = "SQS leaves orders that were received three times out of its age: only WaitingAge shows that they wait."
  }
}

run "the_alarms_that_say_stop_say_how" {
  assert {
    condition = alltrue([for name in ["mismatch", "key-reused"] : strcontains(
      aws_cloudwatch_metric_alarm.alarms[name].alarm_description,
      "aws lambda update-event-source-mapping --no-enabled --region eu-west-1 --uuid ${output.event_source_mapping_uuid}",
    )])
    error_message = "An alarm tells to stop processing and not how."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : length(alarm.alarm_description) <= 1024])
    error_message = "CloudWatch refuses a description of more than 1,024 characters."
  }
}

run "without_a_topic_alarms_are_silent" {
  command = plan

  variables {
    alarm_topic_arn = null
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : length(alarm.alarm_actions) == 0])
    error_message = "An alarm without a topic has nobody to tell."
  }
}

run "the_dashboard_answers_three_questions" {
  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets : widget.properties.markdown if widget.type == "text"] == [
      "## Are we charging?", "## Once?", "## Fast?"
    ]
    error_message = "The dashboard's questions are others."
  }

  assert {
    condition     = length([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets : widget if widget.type == "metric"]) == 9
    error_message = "Want three charts a question."
  }
}
