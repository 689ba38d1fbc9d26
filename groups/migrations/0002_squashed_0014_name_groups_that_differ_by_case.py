import django.db.models.deletion
import django.db.models.functions.text
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce


class Migration(migrations.Migration):

    replaces = [
        ('groups', '0002_initial'),
        ('groups', '0003_session_generation'),
        ('groups', '0004_role_usage'),
        ('groups', '0005_start_up_keys'),
        ('groups', '0006_token_type_name'),
        ('groups', '0007_notify_of_changes'),
        ('groups', '0008_membership_by_provider'),
        ('groups', '0009_pending_tokens'),
        ('groups', '0010_invite_links'),
        ('groups', '0011_scim'),
        ('groups', '0012_custody'),
        ('groups', '0013_scim_finds_by_email'),
        ('groups', '0014_name_groups_that_differ_by_case'),
    ]

    dependencies = [
        ('groups', '0001_initial'),
        ('projects', '0001_squashed_0038_users_changed'),
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='StartUpKey',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('secret_hash', models.CharField(max_length=64, unique=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='InviteLink',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('key', models.CharField(editable=False, max_length=16, unique=True)),
                        ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                        ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                        ('expires_at', models.DateTimeField()),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.CharField(blank=True, max_length=255)),
                        ('role', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.role')),
                        ('users', models.ManyToManyField(blank=True, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-created_at', '-id'],
                    },
                ),
                migrations.CreateModel(
                    name='ScimSettings',
                    fields=[
                        ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                        ('is_enabled', models.BooleanField(default=False, verbose_name='enabled')),
                        ('token_hash', models.CharField(editable=False, max_length=64, null=True)),
                        ('token_created_at', models.DateTimeField(editable=False, null=True)),
                        ('seen_at', models.DateTimeField(editable=False, null=True, verbose_name='last used')),
                        ('finds_by_email', models.BooleanField(db_default=False, default=False, help_text="Accounts whose email address is the provider's user name are its own from then on.", verbose_name='finds accounts by email address')),
                    ],
                    options={
                        'verbose_name_plural': 'SCIM settings',
                        'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='scim_settings_one_row')],
                    },
                ),
                migrations.CreateModel(
                    name='Custody',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('how', models.CharField(choices=[('created', 'created'), ('invited', 'invited'), ('signedUp', 'let in with an invite link'), ('password', 'given a password or login link'), ('email', 'given another email address'), ('token', 'given a token')], max_length=16)),
                        ('since', models.DateTimeField(auto_now_add=True)),
                        ('confirmed_at', models.DateTimeField(blank=True, null=True)),
                        ('confirmed_by', models.CharField(blank=True, max_length=255)),
                        ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='custodies', to=settings.AUTH_USER_MODEL)),
                        ('keeper', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ('id',),
                    },
                ),
                migrations.AddField(
                    model_name='user',
                    name='root_role',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='users', to='groups.role'),
                ),
                migrations.AddField(
                    model_name='user',
                    name='session_generation',
                    field=models.PositiveIntegerField(default=0, editable=False, help_text='Sessions of an earlier generation are over.'),
                ),
                migrations.AddField(
                    model_name='user',
                    name='external_id',
                    field=models.CharField(blank=True, db_index=True, help_text="The identity provider's, by SCIM.", max_length=255, null=True),
                ),
                migrations.AddField(
                    model_name='user',
                    name='scim_name',
                    field=models.JSONField(blank=True, editable=False, help_text='Parts of the name, as the identity provider has them.', null=True),
                ),
                migrations.AddField(
                    model_name='apitoken',
                    name='environment',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='projects.environment'),
                ),
                migrations.AddField(
                    model_name='apitoken',
                    name='user',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='apitoken',
                    name='projects',
                    field=models.ManyToManyField(related_name='tokens', through='groups.ApiTokenProject', to='projects.project'),
                ),
                migrations.AddField(
                    model_name='apitoken',
                    name='type_name',
                    field=models.CharField(blank=True, editable=False, help_text='The kind as its creator calls it: "client".', max_length=16),
                ),
                migrations.AddField(
                    model_name='apitoken',
                    name='pending_scope',
                    field=models.JSONField(blank=True, editable=False, help_text='The scope of a token that waits for an environment or projects: {"environment", "projects"}.', null=True),
                ),
                migrations.AddField(
                    model_name='apitokenproject',
                    name='project',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='token_scopes', to='projects.project'),
                ),
                migrations.AddField(
                    model_name='apitokenproject',
                    name='token',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scopes', to='groups.apitoken'),
                ),
                migrations.AddField(
                    model_name='grant',
                    name='project',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='projects.project'),
                ),
                migrations.AddField(
                    model_name='grant',
                    name='user',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='grant',
                    name='group',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='groups.group'),
                ),
                migrations.AddField(
                    model_name='grant',
                    name='role',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='grants', to='groups.role'),
                ),
                migrations.AddField(
                    model_name='group',
                    name='members',
                    field=models.ManyToManyField(related_name='groups', through='groups.GroupMembership', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='group',
                    name='root_role',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='groups', to='groups.role'),
                ),
                migrations.AddField(
                    model_name='group',
                    name='external_id',
                    field=models.CharField(blank=True, help_text="The identity provider's, by SCIM.", max_length=255, null=True),
                ),
                migrations.AddField(
                    model_name='groupmembership',
                    name='group',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='groups.group'),
                ),
                migrations.AddField(
                    model_name='groupmembership',
                    name='user',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='groupmembership',
                    name='by_provider',
                    field=models.BooleanField(db_default=False, default=False, editable=False, help_text='Given, and taken back, by the groups claim of the identity provider.'),
                ),
                migrations.AddField(
                    model_name='loginlink',
                    name='user',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='rolepermission',
                    name='environment',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.environment'),
                ),
                migrations.AddField(
                    model_name='rolepermission',
                    name='role',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='permissions', to='groups.role'),
                ),
                migrations.AddIndex(
                    model_name='grant',
                    index=models.Index(fields=['role', 'project'], include=('user', 'group'), name='grant_role_project'),
                ),
                migrations.AddIndex(
                    model_name='loginfailure',
                    index=models.Index(fields=['account', 'failed_at'], name='login_failure_account'),
                ),
                migrations.AddIndex(
                    model_name='loginfailure',
                    index=models.Index(fields=['address', 'failed_at'], name='login_failure_address'),
                ),
                migrations.AddConstraint(
                    model_name='user',
                    constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('email'), name='user_email_unique'),
                ),
                migrations.AddConstraint(
                    model_name='user',
                    constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('username'), name='user_username_unique'),
                ),
                migrations.AddConstraint(
                    model_name='apitoken',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'personal'), ('user__isnull', False)), models.Q(models.Q(('kind', 'personal'), _negated=True), ('user__isnull', True)), _connector='OR'), name='api_token_personal_has_user'),
                ),
                migrations.AddConstraint(
                    model_name='apitoken',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['backend', 'frontend']), _negated=True), ('environment__isnull', False), ('pending_scope__isnull', False), _connector='OR'), name='api_token_sdk_has_environment'),
                ),
                migrations.AddConstraint(
                    model_name='apitoken',
                    constraint=models.CheckConstraint(condition=models.Q(('pending_scope__isnull', True), models.Q(('all_projects', False), ('environment__isnull', True)), _connector='OR'), name='api_token_pending_has_no_access'),
                ),
                migrations.AddConstraint(
                    model_name='apitokenproject',
                    constraint=models.UniqueConstraint(fields=('token', 'project'), name='api_token_project_once'),
                ),
                migrations.AddConstraint(
                    model_name='grant',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('group__isnull', False), ('user__isnull', True)), models.Q(('group__isnull', True), ('user__isnull', False)), _connector='OR'), name='grant_to_user_or_group'),
                ),
                migrations.AddConstraint(
                    model_name='grant',
                    constraint=models.UniqueConstraint(fields=('project', 'role', 'user'), name='grant_user_once'),
                ),
                migrations.AddConstraint(
                    model_name='grant',
                    constraint=models.UniqueConstraint(fields=('project', 'role', 'group'), name='grant_group_once'),
                ),
                migrations.AddConstraint(
                    model_name='group',
                    constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='group_name_not_empty'),
                ),
                migrations.AddConstraint(
                    model_name='groupmembership',
                    constraint=models.UniqueConstraint(fields=('group', 'user'), name='group_membership_once'),
                ),
                migrations.AddConstraint(
                    model_name='role',
                    constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='role_name_not_empty'),
                ),
                migrations.AddConstraint(
                    model_name='rolepermission',
                    constraint=models.UniqueConstraint(fields=('role', 'permission', 'environment'), name='role_permission_once', nulls_distinct=False),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='apitoken',
                    trigger=pgtrigger.compiler.Trigger(name='notify', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_notify('flagadmin_changes', ''); RETURN NULL;", hash='4d0095f84585833939d153629b0c0be22cb99dda', operation='DELETE OR UPDATE OF "kind", "secret_hash", "environment_id", "all_projects", "expires_at"', pgid='pgtrigger_notify_8ab43', table='groups_apitoken', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='apitokenproject',
                    trigger=pgtrigger.compiler.Trigger(name='notify', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_notify('flagadmin_changes', ''); RETURN NULL;", hash='7f98b545ea54ac804e1fac82db51bd34b9c3f271', operation='INSERT OR UPDATE OR DELETE', pgid='pgtrigger_notify_8996f', table='groups_apitokenproject', when='AFTER')),
                ),
            ],
        ),
    ]
