# Who may do what: roles, operators and queues. The files of policies list every statement of every policy, with
# every part on, keys and producers. docs/reference/iam.md explains each.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  create_intake             = true
  create_receipts           = true
  receipt_from              = "The Shop <receipts@mail.shop.invalid>"
  stock_tracking            = true
  create_example_subscriber = true
  create_operator_policies  = true
  permissions_boundary      = "arn:aws:iam::123456789012:policy/bounds"
  kms_key_arn               = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
  previous_kms_key_arns     = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  producer_arns             = ["arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace"]
  producer_rule_arns        = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
  producer_topic_arns       = ["arn:aws:sns:eu-west-1:210987654321:orders"]
}

# The denial to other senders excludes AWS services, or EventBridge and SNS could not send. Without the
# previous key, older messages could not be received.
run "policies_allow_exactly_what_is_listed" {
  assert {
    condition = toset(flatten([for kind, policies in {
      assume   = { for name, role in aws_iam_role.functions : name => role.assume_role_policy }
      role     = { for name, policy in aws_iam_role_policy.functions : name => policy.policy }
      keys     = { for name, policy in aws_iam_role_policy.keys : name => policy.policy }
      queue    = { for name, policy in aws_sqs_queue_policy.queues : name => policy.policy }
      operator = { read = aws_iam_policy.operator_read[0].policy, repair = aws_iam_policy.operator_repair[0].policy }
      schedule = {
        assume = aws_iam_role.reconcile_schedule.assume_role_policy
        role   = aws_iam_role_policy.reconcile_schedule.policy
      }
      } : [for name, policy in policies : [for s in jsondecode(policy).Statement : [
        # A line for each principal, resource of an operator, and principal that a condition excludes.
        for on in split(can(s.Condition) ? "\n" : try({ operator = " " }[kind], "\n"), join(" ", flatten([try(s.Resource, [])]))) : [
          for except in flatten([try(s.Condition.ArnNotEquals["aws:PrincipalArn"], "")]) : [
            for by in flatten([try(s.Principal.AWS, s.Principal.Service, "")]) : join(" ", compact(concat(
              [kind, name, "${s.Sid}:", s.Effect], sort(flatten([s.Action])),
              [by == "" ? "" : "by ${by}", on == "" ? "" : "on ${on}"],
              [can(s.Condition) ? "if" : "", except == "" ? "" : "not ${except}"],
              [try(jsonencode({ for test, keys in s.Condition : test => keys if test != "ArnNotEquals" }), "")],
            )))
          ]]]]]])) == toset(flatten([for file in fileset("tests", "policies/*") : compact(split("\n", templatefile("tests/${file}", {
          queue    = { for name, queue in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => queue.arn }
          role     = { for name, role in aws_iam_role.functions : name => role.arn }
          log      = { for name, group in aws_cloudwatch_log_group.functions : name => group.arn }
          orders   = aws_dynamodb_table.orders.arn
          stream   = aws_dynamodb_table.orders.stream_arn
          stock    = aws_dynamodb_table.stock[0].arn
          receipts = aws_dynamodb_table.receipts[0].arn
          stripe   = aws_secretsmanager_secret.stripe.arn
          webhook  = aws_secretsmanager_secret.webhook[0].arn
          bus      = aws_cloudwatch_event_bus.orders.arn
          live     = aws_lambda_alias.live["reconcile"].arn
          paid     = aws_cloudwatch_event_rule.paid[0].arn
          rules    = join("\",\"", values(aws_cloudwatch_event_rule.receipts)[*].arn)
          account  = "arn:aws:iam::123456789012:root"
          key      = var.kms_key_arn
          keys     = join(" ", concat(tolist(var.previous_kms_key_arns), [var.kms_key_arn]))
    })))]))
    error_message = "explain changes in docs/reference/iam.md: the statements differ from tests/policies"
  }

  # Each function has its own role, with its policies and the boundary, and each queue its own policy.
  assert {
    condition = { for name, role in aws_iam_role.functions : name => [
      role.name, aws_lambda_function.functions[name].role, aws_iam_role_policy.functions[name].role,
      role.permissions_boundary,
      ] } == { for name in ["order", "refund", "webhook", "reconcile", "publish", "intake", "receipt"] : name => [
      "orderonce-dev-${name}", aws_iam_role.functions[name].arn, aws_iam_role.functions[name].id,
      var.permissions_boundary,
    ] }
    error_message = "roles: each function must have its own, with its policies, and permissions_boundary"
  }

  assert {
    condition = { for name, policy in aws_iam_role_policy.keys : name => policy.role } == {
      for name, role in aws_iam_role.functions : name => role.id
    }
    error_message = "roles: each function must be allowed to use the keys of kms_key_arn"
  }

  assert {
    condition = [
      aws_iam_role_policy.reconcile_schedule.role, aws_iam_role.reconcile_schedule.name,
      aws_iam_role.reconcile_schedule.permissions_boundary,
    ] == ["schedule", "orderonce-dev-reconcile-schedule", var.permissions_boundary]
    error_message = "role: the schedule must have its own, with this policy and the boundary"
  }

  assert {
    condition = { for name, policy in aws_sqs_queue_policy.queues : name => policy.queue_url } == {
      for name, queue in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => queue.url
    }
    error_message = "queue policy: a queue has none, or that of another"
  }

  assert {
    condition = alltrue(flatten([for policy in aws_sqs_queue_policy.queues :
      [for s in jsondecode(policy.policy).Statement : length(flatten([s.Action])) <= 7]
    ]))
    error_message = "SQS rejects a statement with more than seven actions"
  }

  assert {
    condition = [
      aws_iam_policy.operator_read[0].name, output.operator_read_policy_arn,
      aws_iam_policy.operator_repair[0].name, output.operator_repair_policy_arn,
      ] == [
      "orderonce-dev-operator-read", "arn:aws:iam::123456789012:policy/read",
      "orderonce-dev-operator-repair", "arn:aws:iam::123456789012:policy/repair",
    ]
    error_message = "names: a permission set names a policy, so they must not change; outputs: must be the ARNs"
  }

  # In a rule that the files of policies cannot break: nothing has a wildcard but log streams.
  assert {
    condition = !can(regex("[*?]", replace(join("", concat(
      values(aws_iam_role_policy.functions)[*].policy, values(aws_iam_role_policy.keys)[*].policy,
      values(aws_sqs_queue_policy.queues)[*].policy, values(aws_iam_role.functions)[*].assume_role_policy,
      aws_iam_policy.operator_read[*].policy, aws_iam_policy.operator_repair[*].policy, [
        aws_iam_role_policy.reconcile_schedule.policy, aws_iam_role.reconcile_schedule.assume_role_policy,
      ])), ":log-stream:*\"", "\""))) && !strcontains(
      "${aws_iam_policy.operator_read[0].policy}${aws_iam_policy.operator_repair[0].policy}", "secretsmanager",
    )
    error_message = "a statement has a wildcard, or an operator reads a secret"
  }

  assert {
    condition = (
      aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPT_FROM
      == "The Shop <receipts@mail.shop.invalid>"
    )
    error_message = "RECEIPT_FROM: must be receipt_from as it is"
  }

  assert {
    condition = jsonencode([for s in jsondecode(output.intake_caller_policy).Statement :
      [s.Effect, s.Action, sort(s.Resource)]
      ]) == jsonencode([["Allow", "execute-api:Invoke", [
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/GET/orders/*",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/POST/orders",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/PUT/orders/*",
    ]]])
    error_message = "intake_caller_policy: got ${coalesce(output.intake_caller_policy, "null")}"
  }
}

run "only_tracing_allows_actions_on_any_resource" {
  variables {
    tracing          = true
    receipt_from     = "receipts@shop.invalid"
    receipt_identity = "receipts@shop.invalid"
  }

  assert {
    condition = alltrue([for role in aws_iam_role_policy.functions :
      [for s in jsondecode(role.policy).Statement : s.Action if contains(flatten([s.Resource]), "*")]
      == [["xray:PutTraceSegments", "xray:PutTelemetryRecords"]]
    ])
    error_message = "only X-Ray's actions, which support no resources, may have Resource *"
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.functions : f.tracing_config[0].mode == "Active"])
    error_message = "tracing: ignored"
  }

  assert {
    condition = (
      local.receipt_mail_arns[0] == "arn:aws:ses:eu-west-1:123456789012:identity/receipts@shop.invalid"
    )
    error_message = "receipt_identity: ignored"
  }
}

run "without_listed_producers_iam_policies_decide" {
  variables {
    producer_arns       = []
    producer_rule_arns  = []
    producer_topic_arns = []
  }

  assert {
    condition = alltrue([for name in ["orders", "refunds"] :
      jsondecode(aws_sqs_queue_policy.queues[name].policy).Statement[*].Sid == ["DenyWithoutTLS"]
    ])
    error_message = "queue policy: other senders are denied, or somebody may send"
  }
}

run "with_only_a_rule_listed_the_intake_function_may_send_too" {
  variables {
    producer_arns       = []
    producer_topic_arns = []
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.queues["orders"].policy).Statement :
      s.Condition.ArnNotEquals["aws:PrincipalArn"] if s.Sid == "DenyOtherSenders"
    ] == [[aws_iam_role.functions["intake"].arn]]
    error_message = "queue policy: the intake function may not send, so every order by HTTP gets a 503"
  }
}

run "with_only_a_rule_listed_and_no_intake_nobody_else_can_send" {
  variables {
    create_intake       = false
    producer_arns       = []
    producer_topic_arns = []
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.queues["orders"].policy).Statement :
      s.Condition if s.Sid == "DenyOtherSenders"
    ] == [{ Bool = { "aws:PrincipalIsAWSService" = "false" } }]
    error_message = "DenyOtherSenders: other principals of this account may send"
  }
}

run "without_a_current_key_operators_only_decrypt" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = null
    previous_kms_key_arns = [
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
    ]
  }

  assert {
    condition = [for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      s.Action if can(s.Condition)
    ] == ["kms:Decrypt"]
    error_message = "operator-repair: must still decrypt older messages, and encrypts with no key"
  }
}
