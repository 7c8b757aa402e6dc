mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  alarms                    = "all"
  create_intake             = true
  create_receipts           = true
  stock_tracking            = true
  create_example_subscriber = true
}

# The files of alarms have a line for each: threshold, how many of how many periods, the expression if there is
# one, and each metric by id. A single occurrence of what needs a person has the threshold 0.
run "alarms_read_these_metrics" {
  assert {
    condition = toset([for name, alarm in aws_cloudwatch_metric_alarm.alarms : join("; ", concat(
      [join(" ", [
        "${name}:", alarm.comparison_operator == "LessThanThreshold" ? "<" : ">", alarm.threshold,
        "in", alarm.datapoints_to_alarm, "of", alarm.evaluation_periods, "x",
        one(distinct(flatten([for query in alarm.metric_query : query.metric[*].period]))) / 60, "min",
      ])],
      compact([for query in alarm.metric_query : query.expression == null ? "" : query.expression]),
      sort(flatten([for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        ["${query.id}:", metric.namespace, metric.metric_name, metric.stat],
        [for dimension, value in metric.dimensions : "${dimension}=${value}"],
      ))]])),
    ))]) == toset(flatten([for file in fileset("tests", "alarms/*") : compact(split("\n", file("tests/${file}")))]))
    error_message = "alarms differ from tests/alarms"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.alarm_actions == toset([var.alarm_topic_arn]) && alarm.ok_actions == toset([var.alarm_topic_arn])
    ])
    error_message = "an alarm does not notify alarm_topic_arn"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : alarm.treat_missing_data == (
      alarm.comparison_operator == "LessThanThreshold" ? "breaching" : "notBreaching"
    )])
    error_message = "treat_missing_data: must be notBreaching, or an idle queue raises an alarm, except below a threshold"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : (
      alarm.datapoints_to_alarm <= alarm.evaluation_periods
      && length([for query in alarm.metric_query : query.id if query.return_data]) == 1
      && length(alarm.metric_query) <= 10 && length(alarm.alarm_description) <= 1024
      && !strcontains(jsonencode(alarm.metric_query), "SEARCH")
    )])
    error_message = "CloudWatch rejects another result than one, an 11th metric, SEARCH, or a longer description"
  }

  # CloudWatch API reference, PutMetricAlarm.
  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms : [
      for query in alarm.metric_query : [for m in query.metric :
        m.period * alarm.evaluation_periods <= (m.period < 3600 ? 86400 : 604800)
      ]
    ]]))
    error_message = "CloudWatch rejects more than a day, or seven days with periods of an hour"
  }

  assert {
    condition = { for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => true
      if strcontains(alarm.alarm_description, join(" ", [
        "aws lambda update-event-source-mapping --no-enabled --region eu-west-1",
        "--uuid ${output.event_source_mapping_uuid}",
      ]))
    } == { mismatch = true, key-reused = true }
    error_message = "an alarm that may mean a wrong charge must contain the command that stops processing"
  }

  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders[0].dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
      ] == [
      "## Are we charging?", "## Once?", "## Fast?", "## Published?", "## Refunded?", "## Accepted by HTTP?",
      "## Receipts?",
    ]
    error_message = "dashboard: headings differ from this list"
  }

  assert {
    condition = length([for widget in jsondecode(aws_cloudwatch_dashboard.orders[0].dashboard_body).widgets :
      widget if widget.type == "metric"
      ]) == 3 * length([for widget in jsondecode(aws_cloudwatch_dashboard.orders[0].dashboard_body).widgets :
      widget if widget.type == "text"
    ])
    error_message = "dashboard: must have three charts per question"
  }

  assert {
    condition = one([for widget in jsondecode(aws_cloudwatch_dashboard.orders[0].dashboard_body).widgets :
      widget.properties.metrics[0][0] if try(widget.properties.title, "") == "Refunds, by reason"
      ]) == {
      label      = "$${PROP('Dim.Reason')}"
      expression = "SEARCH('{orderonce,Function,Scope,Reason} Scope=\"orderonce-dev-836569\" MetricName=\"Refunds\"', 'Sum', 300)"
    }
    error_message = "dashboard: refunds have the dimension Function"
  }
}

run "reconcile_errors_includes_two_consecutive_runs" {
  command = plan

  variables {
    reconcile_minutes = 60
  }

  # Runs are an hour apart, so two of them never fall into twelve periods of five minutes.
  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].evaluation_periods >= 13
    error_message = "reconcile-errors: must include two consecutive runs"
  }
}

run "without_the_optional_parts_their_alarms_and_rows_are_absent" {
  variables {
    create_refund             = false
    create_intake             = false
    create_receipts           = false
    create_example_subscriber = false
  }

  assert {
    condition = toset(keys(aws_cloudwatch_metric_alarm.alarms)) == setsubtract(flatten([
      for part in ["order", "publish", "reconcile", "webhook"] :
      regexall("(?m)^[a-z-]+", try(file("tests/alarms/${part}.txt"), ""))
    ]), ["subscriber-dead-letters"])
    error_message = "an alarm of a part that is off remains, or one of another part is missing"
  }

  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders[0].dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
    ] == ["## Are we charging?", "## Once?", "## Fast?", "## Published?"]
    error_message = "dashboard: a row of a part that is off remains"
  }
}

run "only_essential_alarms_exist_by_default" {
  command = plan

  variables {
    alarms = "essential"
  }

  assert {
    condition     = toset(keys(aws_cloudwatch_metric_alarm.alarms)) == toset(local.essential)
    error_message = "alarms: one that is essential is missing, or another exists"
  }
}

run "without_alarms_there_are_none_and_no_topic_is_needed" {
  command = plan

  variables {
    alarms           = "none"
    create_dashboard = false
    alarm_topic_arn  = null
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.alarms) == 0 && length(aws_cloudwatch_dashboard.orders) == 0
    error_message = "alarms or create_dashboard: ignored"
  }
}

run "without_a_topic_alarms_notify_nobody" {
  command = plan

  variables {
    alarm_topic_arn = null
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length(alarm.alarm_actions) == 0
    ])
    error_message = "an alarm has actions without a topic"
  }

  expect_failures = [check.alarms_notify_somebody]
}
